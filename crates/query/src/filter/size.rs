//! How large a predicate may be: what is read, planned and evaluated takes memory, time and stack by its size.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::refusal::{Result, invalid};

/// Bytes of a predicate.
pub const MOST_BYTES: usize = 1 << 20;
/// Operators of a predicate: each may be a level of its tree.
pub const MOST_OPERATORS: usize = 1_000;

/// Refuses a predicate that is too large.
///
/// # Errors
/// InvalidArgument with the limit.
pub fn check(predicate: &str) -> Result<()> {
    let bytes = predicate.len();
    if bytes > MOST_BYTES {
        let text = format!(
            "the predicate has {bytes} bytes; at most {MOST_BYTES} are read, so ask in several requests"
        );
        return Err(invalid("predicate_too_large", &text));
    }
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, predicate).tokenize() else {
        // The parser says what is wrong.
        return Ok(());
    };
    let tokens = tokens.iter();
    let tokens: Vec<&Token> = tokens
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    let operators = operators(&tokens);
    if operators > MOST_OPERATORS {
        let text = format!(
            "the predicate has {operators} operators; at most {MOST_OPERATORS} are read, so write x IN (…) for x = … OR x = …"
        );
        return Err(invalid("predicate_too_large", &text));
    }
    Ok(())
}

/// How many operators there are: each may be a level of the tree. The first comparison by a word between two ANDs is none,
/// since it compares what is not compared itself.
fn operators(tokens: &[&Token]) -> usize {
    let mut count = 0;
    let mut is_compared = false;
    for at in 0..tokens.len() {
        match tokens[at] {
            Token::Word(word) if compares(word.keyword) => {
                count += usize::from(std::mem::replace(&mut is_compared, true));
            }
            token => {
                count += usize::from(is_operator(tokens, at));
                is_compared &= !begins_anew(token);
            }
        }
    }
    count
}

/// Words that compare what stands before them, or move it to another time zone.
fn compares(word: Keyword) -> bool {
    matches!(
        word,
        Keyword::AT
            | Keyword::ILIKE
            | Keyword::LIKE
            | Keyword::REGEXP
            | Keyword::RLIKE
            | Keyword::SIMILAR
    )
}

/// Whether a comparison behind a token is not of what is compared before it.
fn begins_anew(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(word.keyword, Keyword::AND | Keyword::OR),
        Token::Comma | Token::LParen | Token::RParen => true,
        _ => false,
    }
}

fn is_operator(tokens: &[&Token], at: usize) -> bool {
    match tokens[at] {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::CASE
                | Keyword::CAST
                | Keyword::DIV
                | Keyword::IS
                | Keyword::NOT
                | Keyword::OR
                | Keyword::OVERLAPS
                | Keyword::XOR
        ),
        // A sign of a number in a list is none.
        Token::Minus | Token::Plus => !matches!(
            (at.checked_sub(1).map(|at| tokens[at]), tokens.get(at + 1)),
            (Some(Token::Comma | Token::LParen), Some(Token::Number(..)))
        ),
        Token::Comma
        | Token::RParen
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::EOF => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_pass_and_long_chains_do_not() {
        let numbers: Vec<String> = (-20_000..20_000).map(|n| n.to_string()).collect();
        assert_eq!(check(&format!("id IN ({})", numbers.join(", "))), Ok(()));
        let signs = [" + ", "::", " || ", " = ", ".", "[", "("];
        let words = [
            " OR ",
            " XOR ",
            " LIKE ",
            " ILIKE ",
            " RLIKE ",
            " SIMILAR TO ",
            " REGEXP ",
            " DIV ",
            " OVERLAPS ",
            " AT TIME ZONE ",
        ];
        for operator in signs.iter().chain(&words) {
            let chain = vec!["a"; MOST_OPERATORS + 3].join(operator);
            let refused = check(&chain).expect_err("too long");
            assert_eq!(refused.code, "predicate_too_large", "{operator}");
        }
        let conditions = vec!["a LIKE 'x' AND b NOT IN (1, 2)"; 200].join(" OR ");
        assert_eq!(check(&conditions), Ok(()));
        let likes = vec!["a LIKE 'x'"; MOST_OPERATORS].join(" OR ");
        assert_eq!(check(&likes), Ok(()));
        let spaces = " ".repeat(MOST_BYTES + 1);
        assert_eq!(
            check(&spaces).expect_err("too long").code,
            "predicate_too_large"
        );
    }
}
