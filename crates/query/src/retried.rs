//! What a parser reads again and again.
//!
//! Some words begin an expression of their own and name a function as well: `floor(`, `CAST(`, `NOT(`. The parser tries the
//! one, and if it meets a mistake the other, each time with all that stands in the brackets. So a mistake within such
//! brackets within such brackets doubles the work with each level, and thirty levels are never read to their end.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

/// Levels that may be read twice: what stands in them is read some thousand times at worst.
const MOST: usize = 12;

/// What to tell of a text that nests too many; `None` if it may be read.
pub(crate) fn refusal(what: &str, tokens: &[Token]) -> Option<String> {
    let levels = levels(tokens);
    (levels > MOST).then(|| {
        format!(
            "the {what} nests {levels} of CAST, CASE, NOT, FLOOR, POSITION and the like, the limit is {MOST}; write it flatter"
        )
    })
}

/// How many brackets that may be read twice stand within each other; those that may be read four times count two.
fn levels(tokens: &[Token]) -> usize {
    // Of each open bracket what it counts itself, and what the argument that is being read adds.
    let mut open: Vec<[usize; 2]> = Vec::new();
    let (mut sum, mut most) = (0, 0);
    let mut before = &Token::EOF;
    let tokens = tokens.iter();
    for token in tokens.filter(|token| !matches!(token, Token::Whitespace(_))) {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                open.push([weight(before), 0]);
                sum += weight(before);
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                sum -= open.pop().map_or(0, |counted| counted.iter().sum());
            }
            // The value of a named argument is tried as a plain one, too.
            Token::Assignment => {
                if let Some([_, named]) = open.last_mut() {
                    *named += 1;
                    sum += 1;
                }
            }
            // Those before it were read, and stay so.
            Token::Comma => {
                if let Some([_, named]) = open.last_mut() {
                    sum -= std::mem::take(named);
                }
            }
            _ => {}
        }
        most = most.max(sum);
        before = token;
    }
    most
}

/// How often more than once, as a power of two, brackets behind a token may be read.
fn weight(before: &Token) -> usize {
    let Token::Word(word) = before else {
        return 0;
    };
    match word.keyword {
        Keyword::POSITION => 2,
        Keyword::ARRAY
        | Keyword::CASE
        | Keyword::CAST
        | Keyword::CEIL
        | Keyword::CONVERT
        | Keyword::EXISTS
        | Keyword::EXTRACT
        | Keyword::FLOOR
        | Keyword::INTERVAL
        | Keyword::LAMBDA
        | Keyword::MAP
        | Keyword::MATCH
        | Keyword::NOT
        | Keyword::OVERLAY
        | Keyword::PRIOR
        | Keyword::SAFE_CAST
        | Keyword::STRUCT
        | Keyword::SUBSTR
        | Keyword::SUBSTRING
        | Keyword::TRIM
        | Keyword::TRY_CAST
        | Keyword::TRY_CONVERT => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    #[test]
    fn brackets_behind_words_of_two_meanings_count() {
        for (text, expected) in [
            ("abs((((1))))", 0),
            ("CAST(floor(x) AS INT) + CAST(y AS INT)", 2),
            ("NOT (a AND NOT /* */ (b OR not(c)))", 3),
            ("\"floor\"(floor(1))", 1),
            ("position(position('a' in b) in c)", 4),
            ("f(a := f(a := 1), b := 2)", 2),
            ("f(a := 1, b := g(c := 2), d := 3, e := 4)", 2),
            ("cast(f(a := 1, b := 2))", 2),
            ("ARRAY[ARRAY[1]]", 2),
            (")))floor(", 1),
        ] {
            let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
            assert_eq!(levels(&tokens.expect("words")), expected, "{text}");
        }
    }
}
