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
    let operators = (0..tokens.len())
        .filter(|at| is_operator(&tokens, *at))
        .count();
    if operators > MOST_OPERATORS {
        let text = format!(
            "the predicate has {operators} operators; at most {MOST_OPERATORS} are read, so write x IN (…) for x = … OR x = …"
        );
        return Err(invalid("predicate_too_large", &text));
    }
    Ok(())
}

fn is_operator(tokens: &[&Token], at: usize) -> bool {
    match tokens[at] {
        Token::Word(word) => is_between_operands(word.keyword),
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

/// Whether a word does what a sign does: joins two parts, or stands before one.
fn is_between_operands(word: Keyword) -> bool {
    matches!(
        word,
        Keyword::AND
            | Keyword::AT
            | Keyword::BETWEEN
            | Keyword::CASE
            | Keyword::CAST
            | Keyword::COLLATE
            | Keyword::DIV
            | Keyword::ILIKE
            | Keyword::IN
            | Keyword::INTERVAL
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::MATCH
            | Keyword::MEMBER
            | Keyword::NOT
            | Keyword::OPERATOR
            | Keyword::OR
            | Keyword::OVERLAPS
            | Keyword::REGEXP
            | Keyword::RLIKE
            | Keyword::SIMILAR
            | Keyword::XOR
    )
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
            " NOT ILIKE ",
            " SIMILAR TO ",
            " REGEXP ",
            " DIV ",
            " IN ",
            " COLLATE ",
            " OVERLAPS ",
            " AT TIME ZONE ",
        ];
        for operator in signs.iter().chain(&words) {
            let chain = vec!["a"; MOST_OPERATORS + 2].join(operator);
            let refused = check(&chain).expect_err("too long");
            assert_eq!(refused.code, "predicate_too_large", "{operator}");
        }
        let spaces = " ".repeat(MOST_BYTES + 1);
        assert_eq!(
            check(&spaces).expect_err("too long").code,
            "predicate_too_large"
        );
    }
}
