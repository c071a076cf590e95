//! The values of a prepared statement's parameters. Each is put into the statement as a call of a function without
//! arguments but its number, which the optimiser replaces by the value: so a vector of a thousand numbers is neither written
//! out as text nor read from it.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::refuse::ours;
use crate::refusal::{self, invalid};

/// The function that stands for a parameter, with its number appended. No function of DataFusion's is called so.
pub(super) const FUNCTION: &str = "longbow_parameter_";

/// The values that one row of parameters holds.
///
/// # Errors
/// If there is no such row, or a value is of a type that no constant has.
pub(super) fn values(rows: &RecordBatch, row: usize) -> refusal::Result<Vec<ScalarValue>> {
    if row >= rows.num_rows() {
        let text = "the statement's parameters have no row; bind one value for each";
        return Err(invalid("bad_parameters", text));
    }
    let values = rows
        .columns()
        .iter()
        .map(|column| ScalarValue::try_from_array(column, row));
    values.collect::<Result<_>>().map_err(|error| {
        let text =
            format!("a parameter cannot be read ({error}); bind a number, text, time or list");
        invalid("bad_parameters", &text)
    })
}

/// One parameter with its value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Parameter {
    name: String,
    value: ScalarValue,
    signature: Signature,
}

/// The functions for values, from `$1` on.
pub(super) fn functions(values: &[ScalarValue]) -> Vec<ScalarUDF> {
    let numbered = values.iter().zip(1..);
    let function = |(value, number): (&ScalarValue, usize)| {
        ScalarUDF::new_from_impl(Parameter {
            name: format!("{FUNCTION}{number}"),
            value: value.clone(),
            signature: Signature::nullary(Volatility::Immutable),
        })
    };
    numbered.map(function).collect()
}

impl ScalarUDFImpl for Parameter {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [] => Ok(self.value.data_type()),
            _ => Err(ours(invalid(
                "bad_sql",
                "a parameter is no function; write $1, $2, …",
            ))),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }

    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(
            self.value.clone(),
            None,
        )))
    }
}
