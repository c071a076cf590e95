//! SQL read into trees by DataFusion's parser, with bounded work.
//!
//! The parser tries one way to read an expression, and after a mistake another: `floor(` as a word of the language and as
//! any function, what stands behind a dot as an expression and as a mere name, `interval` as the word and as a column. Each
//! time it reads what follows anew, so that within each other they double its work: of `a.b.c` with thirty dots and a
//! mistake behind them it finds no end. All those ways come through the same door, the begin of an expression; here
//! the passes are counted, and when there were too many, the parser is stopped. Brackets of tables, which it reads again without
//! beginning an expression, are counted before, by [`crate::sql`].
//!
//! What it is not for: how deep a tree may be, which the parser, [`crate::sql`] and the filters bound, and the size of a text.

use std::any::TypeId;
use std::cell::Cell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use datafusion::error::Result;
use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{Expr, ExprWithAlias};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};

/// Expressions that may be begun beside one for each token of the text.
const MOST_BEYOND: usize = 1 << 16;
/// How long may be read what was read before: each of them may be as long as the text.
const LONGEST: Duration = Duration::from_secs(2);

/// The words and signs of a text. A run of blanks is one: the parser walks over each whenever it looks ahead.
///
/// # Errors
/// For what is none, such as a text that does not end.
pub(crate) fn tokens(text: &str) -> std::result::Result<Vec<TokenWithSpan>, TokenizerError> {
    let mut tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location()?;
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    tokens.dedup_by(|after, before| is_blank(after) && is_blank(before));
    Ok(tokens)
}

/// Reads statements.
///
/// # Errors
/// Those of the parser; `RecursionLimitExceeded` also for what would be read again and again.
pub(crate) fn statements(tokens: Vec<TokenWithSpan>) -> Result<VecDeque<Statement>> {
    Metered::new(&tokens).read(tokens, |parser| parser.parse_statements())
}

/// Reads an expression.
///
/// # Errors
/// As [`tokens`] and [`statements`].
pub(crate) fn expression(text: &str) -> Result<ExprWithAlias> {
    let tokens = tokens(text).map_err(ParserError::from)?;
    Metered::new(&tokens).read(tokens, |parser| parser.parse_into_expr())
}

/// DataFusion's dialect, by which so many expressions may be begun.
#[derive(Debug)]
struct Metered {
    left: Cell<usize>,
    /// How far the parser was when it had come farthest: what begins before that was read already.
    farthest: Cell<usize>,
    began: Instant,
    stopped: Cell<bool>,
}

impl Metered {
    /// One by which an expression may begin for each of the tokens, and some more.
    fn new(tokens: &[TokenWithSpan]) -> Self {
        Metered {
            left: Cell::new(MOST_BEYOND + tokens.len()),
            farthest: Cell::new(0),
            began: Instant::now(),
            stopped: Cell::new(false),
        }
    }

    /// What is read of the tokens; an error if the parser was stopped, for it may have taken that for a mistake, and gone on.
    fn read<T>(
        &self,
        tokens: Vec<TokenWithSpan>,
        read: impl FnOnce(&mut DFParser<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut parser = DFParserBuilder::new(tokens).with_dialect(self).build()?;
        let read = read(&mut parser);
        match self.stopped.get() {
            true => Err(ParserError::RecursionLimitExceeded.into()),
            false => read,
        }
    }

    /// Whether an expression may begin behind so many tokens.
    fn may_begin(&self, at: usize) -> bool {
        let was_read = at <= self.farthest.get();
        self.farthest.set(self.farthest.get().max(at));
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0 && !(was_read && self.began.elapsed() > LONGEST)
    }
}

fn is_interval(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == Keyword::INTERVAL)
}

/// Answers as the dialect that is metered does. Only what that one answers differently from any dialect needs to be here.
macro_rules! as_generic {
    ($($name:ident)*) => {
        $(fn $name(&self) -> bool {
            GenericDialect.$name()
        })*
    };
}

impl Dialect for Metered {
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<std::result::Result<Expr, ParserError>> {
        if !self.may_begin(parser.get_current_index()) {
            self.stopped.set(true);
            // Most of what the parser tries ends at once with this error; what goes on all the same fails at the next begin.
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        if is_interval(parser.get_current_token()) && is_interval(parser.peek_token_ref()) {
            // This is the only one that begins another without a look at how deep it is.
            let text = "INTERVAL of an INTERVAL; give its length as a text";
            return Some(Err(ParserError::ParserError(text.into())));
        }
        None
    }

    /// Nothing can plan it, and its patterns nest without a limit.
    fn supports_match_recognize(&self) -> bool {
        false
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        GenericDialect.is_delimited_identifier_start(letter)
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        GenericDialect.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        GenericDialect.is_identifier_part(letter)
    }

    as_generic! {
        supports_unicode_string_literal
        supports_partition_by_after_order_by
        supports_array_join_syntax
        supports_group_by_expr
        supports_group_by_with_modifier
        supports_left_associative_joins_without_parens
        supports_connect_by
        supports_pipe_operator
        supports_start_transaction_modifier
        supports_window_function_null_treatment_arg
        supports_dictionary_syntax
        supports_window_clause_named_window_reference
        supports_parenthesized_set_variables
        supports_select_wildcard_except
        support_map_literal_syntax
        allow_extract_custom
        allow_extract_single_quotes
        supports_extract_comma_syntax
        supports_create_view_comment_syntax
        supports_parens_around_table_factor
        supports_values_as_table_factor
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_limit_comma
        supports_update_order_by
        supports_from_first_select
        supports_projection_trailing_commas
        supports_asc_desc_in_column_definition
        supports_try_convert
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_assignment_operator
        supports_struct_literal
        supports_empty_projections
        supports_nested_comments
        supports_multiline_comment_hints
        supports_user_host_grantee
        supports_string_escape_constant
        supports_array_typedef_with_brackets
        supports_match_against
        supports_set_names
        supports_comma_separated_set_assignments
        supports_filter_during_aggregation
        supports_select_wildcard_exclude
        supports_data_type_signed_suffix
        supports_interval_options
        supports_quote_delimited_string
        supports_select_wildcard_replace
        supports_select_wildcard_ilike
        supports_select_wildcard_rename
        supports_optimize_table
        supports_install
        supports_detach
        supports_prewhere
        supports_with_fill
        supports_limit_by
        supports_interpolate
        supports_settings
        supports_select_format
        supports_comment_optimizer_hint
        supports_constraint_keyword_without_name
        supports_key_column_option
        supports_comma_separated_trim
        supports_cte_without_as
        supports_select_item_multi_column_alias
        supports_xml_expressions
    }
}

#[cfg(test)]
mod tests {
    use datafusion::error::DataFusionError;

    use super::*;

    fn read(text: &str) -> Result<VecDeque<Statement>> {
        statements(tokens(text).expect("words"))
    }

    fn is_stopped(text: &str) -> bool {
        match read(text) {
            Err(DataFusionError::SQL(error, _)) => {
                matches!(*error, ParserError::RecursionLimitExceeded)
            }
            _ => false,
        }
    }

    #[test]
    fn what_would_be_read_again_and_again_is_stopped() {
        for unit in [".b", ".f(b", " + CAST(a", " + position(a", " + f(a := 1"] {
            let text = format!("SELECT * FROM t WHERE a{} .)", unit.repeat(40));
            assert!(is_stopped(&text), "{text}");
        }
    }

    #[test]
    fn long_lists_and_what_nests_without_mistakes_is_read() {
        for text in [
            format!("SELECT [{}1]", "1,".repeat(100_000)),
            format!("INSERT INTO t VALUES {}(1)", "(1),".repeat(50_000)),
            format!("SELECT a{}", ".b".repeat(40)),
            format!("SELECT {}1{}", "abs(".repeat(40), ")".repeat(40)),
            format!("SELECT {}1{}", "CAST(".repeat(12), " AS INT)".repeat(12)),
        ] {
            assert!(read(&text).is_ok(), "{}", &text[..60]);
        }
    }

    #[test]
    fn intervals_of_intervals_and_blanks_take_no_room() {
        let text = format!("SELECT {}", "INTERVAL ".repeat(100_000));
        assert!(read(&text).is_err());
        let text = format!("SELECT{}1", " \n".repeat(1_000_000));
        assert_eq!(tokens(&text).expect("words").len(), 3);
        assert!(read("SELECT INTERVAL '1' DAY, interval FROM t").is_ok());
    }

    /// Every line of the files of statements, good and bad, whole or part of one.
    #[test]
    fn statements_are_read_as_by_the_dialect_that_is_metered() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slt");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a text");
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let same = DFParserBuilder::new(line)
                    .build()
                    .and_then(|mut parser| parser.parse_statements());
                count += usize::from(same.is_ok());
                let read = tokens(line).ok().and_then(|tokens| statements(tokens).ok());
                assert_eq!(read, same.ok(), "{line}");
            }
        }
        assert!(count > 100, "{count} lines");
    }
}
