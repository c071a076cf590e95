//! What is refused of a statement before it is parsed: too long, or nested so deeply that planning it would take for ever.
//!
//! The parser bounds its own recursion, but it reads `a + a + a + …` in a loop, and what it makes of that is as deep as the
//! chain is long: everything that walks it, down to freeing it, does so by recursion.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parser;
use crate::refusal::{Result, invalid};

/// Most words, values and signs of a statement: each value of a list takes half a kilobyte while it is planned.
const MOST_TOKENS: usize = 400_000;
/// Tokens that the parser may read, where brackets of tables are read twice.
const MOST_READ: usize = 1 << 24;
/// Most tokens between two commas, over all open brackets: what a chain of operators or joins may be long.
const LONGEST_CHAIN: usize = 2_000;

/// The words and signs of a statement, unless it is too long or too deep.
///
/// # Errors
/// InvalidArgument, `sql_too_long` or `sql_too_deep`, or `bad_sql` for what cannot even be cut into words.
pub(super) fn check(text: &str, longest: usize) -> Result<Vec<TokenWithSpan>> {
    if text.len() > longest {
        let text = format!(
            "the statement has {} bytes, the limit is {longest}; send vectors and long lists as parameters, or raise LONGBOW_SQL_MAX_LENGTH",
            text.len()
        );
        return Err(invalid("sql_too_long", &text));
    }
    let tokens = parser::tokens(text)
        .map_err(|error| invalid("bad_sql", &format!("{error}; correct the statement")))?;
    let count = signs(&tokens).count();
    if count > MOST_TOKENS {
        let text = format!(
            "the statement has {count} words, values and signs, the limit is {MOST_TOKENS}; send vectors and long lists as parameters"
        );
        return Err(invalid("sql_too_long", &text));
    }
    let levels = bracketed_tables(&tokens);
    if count << levels.min(20) > MOST_READ {
        let text = format!(
            "the statement opens {levels} brackets right within others behind FROM or JOIN, too many for its length; write it flatter"
        );
        return Err(invalid("sql_too_deep", &text));
    }
    let longest = longest_chain(&tokens);
    if longest > LONGEST_CHAIN {
        let text = format!(
            "the statement chains {longest} words and operators without a comma, the limit is {LONGEST_CHAIN}; write it shorter, for instance with IN (…)"
        );
        return Err(invalid("sql_too_deep", &text));
    }
    Ok(tokens)
}

/// All tokens but blanks.
fn signs(tokens: &[TokenWithSpan]) -> impl Iterator<Item = &Token> {
    let tokens = tokens.iter().map(|token| &token.token);
    tokens.filter(|token| !matches!(token, Token::Whitespace(_)))
}

/// How many brackets behind FROM, JOIN or a comma stand right within another at a time. The parser reads each as a query, and after a
/// mistake as a table, with all that is in it.
fn bracketed_tables(tokens: &[TokenWithSpan]) -> usize {
    // Of each open bracket whether it counts.
    let mut open: Vec<bool> = Vec::new();
    let (mut levels, mut most) = (0, 0);
    // Whether a bracket may be of a table here, and stand right within another.
    let (mut may_be_table, mut is_within) = (false, false);
    for token in signs(tokens) {
        match token {
            Token::LParen => {
                let counts = may_be_table && is_within;
                open.push(counts);
                levels += usize::from(counts);
                most = most.max(levels);
                is_within = may_be_table;
            }
            Token::RParen => {
                levels -= usize::from(open.pop().unwrap_or(false));
                (may_be_table, is_within) = (false, false);
            }
            Token::Comma => (may_be_table, is_within) = (true, false),
            Token::Word(word) if matches!(word.keyword, Keyword::FROM | Keyword::JOIN) => {
                (may_be_table, is_within) = (true, false);
            }
            _ => (may_be_table, is_within) = (false, false),
        }
    }
    most
}

/// A bracket that is open: how long the chain in it is so far, and whether a comma ends a chain there. After FROM it does
/// not, where it joins.
#[derive(Default)]
struct Level {
    chain: usize,
    joins: bool,
}

fn longest_chain(tokens: &[TokenWithSpan]) -> usize {
    let mut levels = vec![Level::default()];
    let (mut sum, mut longest) = (0, 0);
    for token in signs(tokens) {
        let nested = levels.len() > 1;
        let Some(level) = levels.last_mut() else {
            break;
        };
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => levels.push(Level::default()),
            Token::RParen | Token::RBracket | Token::RBrace if nested => {
                sum -= level.chain;
                levels.pop();
            }
            Token::Comma if !level.joins => {
                sum -= level.chain;
                level.chain = 0;
            }
            token => {
                level.joins |= matches!(token, Token::Word(word) if word.keyword == Keyword::FROM);
                level.chain += 1;
                sum += 1;
                longest = longest.max(sum);
            }
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> Option<&'static str> {
        check(text, 1 << 20).err().map(|refusal| refusal.code)
    }

    #[test]
    fn long_lists_pass_and_long_chains_do_not() {
        let list = "1.5,".repeat(60_000);
        assert_eq!(code_of(&format!("SELECT [{list}1]")), None);
        assert_eq!(
            code_of(&format!("SELECT * FROM t WHERE id IN ({list}1)")),
            None
        );
        let rows = "(1, [0.5, 0.5]),".repeat(20_000);
        assert_eq!(
            code_of(&format!("INSERT INTO t VALUES {rows}(1, [0.5, 0.5])")),
            None
        );
        for (begin, link) in [
            ("SELECT 1", "+1"),
            ("SELECT 1", " OR true"),
            ("SELECT * FROM t", ",t"),
            ("SELECT 1", " UNION SELECT 1"),
        ] {
            let chain = format!("{begin}{}", link.repeat(10_000));
            assert_eq!(code_of(&chain), Some("sql_too_deep"), "{link}");
        }
    }

    #[test]
    fn brackets_of_tables_that_would_be_read_again_and_again_are_refused() {
        let open = |times, unit: &str, end: &str| code_of(&format!("{}{end}", unit.repeat(times)));
        assert_eq!(
            open(11, "SELECT * FROM (((", "SELECT *"),
            Some("sql_too_deep")
        );
        let long = format!("SELECT *{}", ",*".repeat(100_000));
        assert_eq!(open(8, "SELECT * FROM ((", &long), Some("sql_too_deep"));
        assert_eq!(open(40, "SELECT * FROM (", "SELECT 1"), None);
        let joins = format!("SELECT * FROM {}a", "(".repeat(8));
        assert_eq!(open(1, &joins, &" JOIN b ON a.id = b.id)".repeat(8)), None);
        let rows = "(((1))),".repeat(20_000);
        assert_eq!(
            open(1, "INSERT INTO t VALUES ", &format!("{rows}(1)")),
            None
        );
    }

    #[test]
    fn what_is_too_long_or_no_text_is_refused() {
        assert_eq!(
            check("SELECT 1", 7).map_err(|refusal| refusal.code),
            Err("sql_too_long")
        );
        let list = "1,".repeat(MOST_TOKENS / 2);
        assert_eq!(code_of(&format!("SELECT [{list}1]")), Some("sql_too_long"));
        assert_eq!(code_of("SELECT 'open"), Some("bad_sql"));
        assert_eq!(code_of(")))((("), None);
    }
}
