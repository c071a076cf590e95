//! What is done to a parsed statement before it is planned: parameters are put in, named arguments of `vector_search` into
//! their places, and LATERAL before it where its vector is a column.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Statement as Ast, TableFactor, Value,
    ValueWithSpan, VisitMut, VisitorMut,
};

use super::parameters::FUNCTION;
use super::search_function::Function;
use super::{assigned, distance};
use crate::parser;
use crate::refusal::{Refusal, Result, invalid};

/// What a pass finds wrong.
type Flow = ControlFlow<Refusal>;

/// Puts the values of the parameters in.
///
/// # Errors
/// InvalidArgument, if there are more or fewer values than parameters.
pub(super) fn with_values(statement: &mut Statement, values: &[ScalarValue]) -> Result<()> {
    let Some(ast) = ast_of(statement) else {
        return Ok(());
    };
    let count = number(ast)?;
    if count != values.len() {
        let text = format!(
            "the statement has {count} parameters and {} values are bound; bind one value for each",
            values.len()
        );
        return Err(invalid("bad_parameters", &text));
    }
    assigned::mark(ast)?;
    pass(ast, &mut Put { values })
}

/// Makes a statement without values one that can be planned: parameters stay where their types can be told from what
/// stands around them, and where a vector is wanted there comes one. Returns how many there are, and those vectors.
///
/// # Errors
/// InvalidArgument, if the parameters are not numbered.
pub(super) fn without_values(
    statement: &mut Statement,
) -> Result<(usize, BTreeMap<usize, DataType>)> {
    let Some(ast) = ast_of(statement) else {
        return Ok((0, BTreeMap::new()));
    };
    let count = number(ast)?;
    let mut stand_ins = StandIns::default();
    pass(ast, &mut stand_ins)?;
    Ok((count, stand_ins.types))
}

fn ast_of(statement: &mut Statement) -> Option<&mut Ast> {
    match statement {
        Statement::Statement(ast) => Some(ast),
        Statement::Explain(explain) => ast_of(&mut explain.statement),
        _ => None,
    }
}

fn pass(ast: &mut Ast, visitor: &mut impl VisitorMut<Break = Refusal>) -> Result<()> {
    match ast.visit(visitor) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refusal) => Err(refusal),
    }
}

/// Numbers parameters that are written as `?`, puts named arguments into their places, and returns the highest number.
fn number(ast: &mut Ast) -> Result<usize> {
    let mut numbers = Numbers::default();
    pass(ast, &mut numbers)?;
    Ok(numbers.highest)
}

#[derive(Default)]
struct Numbers {
    highest: usize,
}

impl VisitorMut for Numbers {
    type Break = Refusal;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> Flow {
        let Value::Placeholder(name) = &mut value.value else {
            return Flow::Continue(());
        };
        if name == "?" {
            *name = format!("${}", self.highest + 1);
        }
        match number_of(name) {
            Some(number) => {
                self.highest = self.highest.max(number);
                Flow::Continue(())
            }
            None => {
                let text = format!("'{name}' is no parameter; write $1, $2, … or ?");
                Flow::Break(invalid("bad_parameters", &text))
            }
        }
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> Flow {
        let Some((function, arguments)) = search_arguments(table) else {
            return Flow::Continue(());
        };
        match in_their_places(function, std::mem::take(arguments)) {
            Ok(placed) => *arguments = placed,
            Err(refusal) => return Flow::Break(refusal),
        }
        if let Some(vector) = arguments.get_mut(function.place_of_vector())
            && is_of_a_row(vector)
        {
            vector.visit(&mut Calls)?;
            make_lateral(table);
        }
        Flow::Continue(())
    }
}

/// Most parameters of a statement.
const MOST: usize = 65_535;

fn number_of(name: &str) -> Option<usize> {
    let number = name.strip_prefix('$')?.parse().ok()?;
    (1..=MOST).contains(&number).then_some(number)
}

/// Puts each value in the place of its parameter.
struct Put<'a> {
    values: &'a [ScalarValue],
}

impl VisitorMut for Put<'_> {
    type Break = Refusal;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let Some(number) = placeholder(expr) else {
            return Flow::Continue(());
        };
        // Counts, as after LIMIT, must be literals when the statement is planned.
        let count = match self.values.get(number - 1) {
            Some(ScalarValue::Int64(Some(count @ 0..))) => Some(count.to_string()),
            Some(ScalarValue::Int32(Some(count @ 0..))) => Some(count.to_string()),
            _ => None,
        };
        written(
            &count.unwrap_or_else(|| format!("{FUNCTION}{number}()")),
            expr,
        )
    }
}

/// Puts vectors in the place of parameters that are to be vectors.
#[derive(Default)]
struct StandIns {
    types: BTreeMap<usize, DataType>,
}

impl StandIns {
    fn stand_in(&mut self, expr: &mut Expr) -> Flow {
        let Some(number) = placeholder(expr) else {
            return Flow::Continue(());
        };
        let item = Field::new_list_field(DataType::Float32, true);
        self.types.insert(number, DataType::List(Arc::new(item)));
        written("[0.0]", expr)
    }
}

impl VisitorMut for StandIns {
    type Break = Refusal;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let Expr::Function(function) = expr else {
            return Flow::Continue(());
        };
        if !distance::is_one(&function.name.to_string().to_ascii_lowercase()) {
            return Flow::Continue(());
        }
        if let FunctionArguments::List(list) = &mut function.args {
            for argument in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                    self.stand_in(expr)?;
                }
            }
        }
        Flow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> Flow {
        let Some((function, arguments)) = search_arguments(table) else {
            return Flow::Continue(());
        };
        for (argument, (name, usual)) in arguments.iter_mut().zip(function.arguments) {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                continue;
            };
            if *name == "vector" {
                self.stand_in(expr)?;
            } else if let Some(number) = placeholder(expr) {
                self.types.insert(number, DataType::Null);
                written(usual, expr)?;
            }
        }
        Flow::Continue(())
    }
}

fn placeholder(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(ValueWithSpan {
            value: Value::Placeholder(name),
            ..
        }) => number_of(name),
        _ => None,
    }
}

/// Replaces an expression by what a text says.
fn written(text: &str, expr: &mut Expr) -> Flow {
    match parser::expression(text) {
        Ok(parsed) => {
            *expr = parsed.expr;
            Flow::Continue(())
        }
        Err(error) => Flow::Break(invalid(
            "bad_parameters",
            &format!("{error}; bind another value"),
        )),
    }
}

/// A search that stands as a table, and its arguments.
fn search_arguments(table: &mut TableFactor) -> Option<(&'static Function, &mut Vec<FunctionArg>)> {
    let (name, arguments) = match table {
        TableFactor::Table {
            name,
            args: Some(arguments),
            ..
        } => (name, &mut arguments.args),
        TableFactor::Function { name, args, .. } => (name, args),
        _ => return None,
    };
    Function::named(&name.to_string()).map(|function| (function, arguments))
}

/// Whether columns are in an argument.
fn is_of_a_row(argument: &mut FunctionArg) -> bool {
    struct Names;
    impl VisitorMut for Names {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    argument.visit(&mut Names).is_break()
}

/// Makes arrays calls: of columns before a function, DataFusion knows those in arguments of calls, and not those in arrays.
struct Calls;

impl VisitorMut for Calls {
    type Break = Refusal;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let Expr::Array(array) = expr else {
            return Flow::Continue(());
        };
        let elements: Vec<String> = array.elem.iter().map(Expr::to_string).collect();
        written(&format!("make_array({})", elements.join(", ")), expr)
    }
}

/// Says LATERAL where it was left out, as it may be before a function.
fn make_lateral(table: &mut TableFactor) {
    if let TableFactor::Table {
        name,
        alias,
        args: Some(arguments),
        ..
    } = table
    {
        *table = TableFactor::Function {
            lateral: true,
            name: name.clone(),
            args: std::mem::take(&mut arguments.args),
            with_ordinality: false,
            alias: alias.take(),
        };
    }
}

/// The arguments of a search in the function's order; those that are not given are null.
fn in_their_places(function: &Function, arguments: Vec<FunctionArg>) -> Result<Vec<FunctionArg>> {
    let mut placed: Vec<Option<FunctionArg>> = Vec::new();
    let mut named = false;
    for argument in arguments {
        let (at, value) = match argument {
            FunctionArg::Unnamed(value) if !named => (placed.len(), value),
            FunctionArg::Named { name, arg, .. } => {
                named = true;
                (place_of(function, &name.value)?, arg)
            }
            other => {
                let text = format!(
                    "the argument {other} of {} stands after a named one, or has no plain name; write name => value",
                    function.name
                );
                return Err(invalid("bad_sql", &text));
            }
        };
        if at >= placed.len() {
            placed.resize_with(at + 1, || None);
        }
        if placed[at].replace(FunctionArg::Unnamed(value)).is_some() {
            let (name, _) = function.arguments.get(at).copied().unwrap_or_default();
            let text = format!("{} is given '{name}' twice; give it once", function.name);
            return Err(invalid("bad_sql", &text));
        }
    }
    let null = || {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(
            Value::Null.with_empty_span(),
        )))
    };
    Ok(placed
        .into_iter()
        .map(|argument| argument.unwrap_or_else(null))
        .collect())
}

fn place_of(function: &Function, name: &str) -> Result<usize> {
    let mut names = function.arguments.iter();
    let at = names.position(|(known, _)| known.eq_ignore_ascii_case(name));
    at.ok_or_else(|| {
        let known: Vec<&str> = function.arguments.iter().map(|(name, _)| *name).collect();
        let text = format!(
            "{} has no argument '{name}'; it has {}",
            function.name,
            known.join(", ")
        );
        invalid("unknown_argument", &text)
    })
}
