//! What there is: flight infos and schemas.

use arrow_flight::{
    Criteria, FlightDescriptor, FlightEndpoint, FlightInfo, SchemaAsIpc, SchemaResult, Ticket,
};
use arrow_ipc::writer::IpcWriteOptions;
use longbow_engine::{Comparison, Dataset};
use longbow_query::conditions;
use serde::Deserialize;
use serde_json::Value;
use tonic::{Code, Status};

use crate::context::Shared;
use crate::json;
use crate::put::dataset_of;
use crate::status::{invalid, of, refused, status};

/// The info of a dataset, by a PATH descriptor.
///
/// # Errors
/// InvalidArgument for the descriptor, NotFound for the dataset.
pub(crate) fn info(context: &Shared, descriptor: &FlightDescriptor) -> Result<FlightInfo, Status> {
    let name = dataset_of(Some(descriptor))?;
    let dataset = context.engine.dataset(&name).map_err(|error| of(&error))?;
    describe(context, &dataset)
}

/// The schema of a dataset, by a PATH descriptor.
///
/// # Errors
/// As [`info`].
pub(crate) fn schema(
    context: &Shared,
    descriptor: &FlightDescriptor,
) -> Result<SchemaResult, Status> {
    let name = dataset_of(Some(descriptor))?;
    let dataset = context.engine.dataset(&name).map_err(|error| of(&error))?;
    let view = dataset.view();
    SchemaAsIpc::new(&view.schema.arrow, &IpcWriteOptions::default())
        .try_into()
        .map_err(internal)
}

/// The infos of the datasets that pass the criteria: none, or a ticket with filters on `name` and `rows`.
///
/// # Errors
/// InvalidArgument for criteria that are not that.
pub(crate) fn list(context: &Shared, criteria: &Criteria) -> Result<Vec<FlightInfo>, Status> {
    let wanted = Wanted::parse(&criteria.expression)?;
    let datasets = context.engine.catalog().datasets();
    datasets
        .iter()
        .filter(|dataset| wanted.passes(dataset))
        .map(|dataset| describe(context, dataset))
        .collect()
}

fn describe(context: &Shared, dataset: &Dataset) -> Result<FlightInfo, Status> {
    let view = dataset.view();
    let ticket = Ticket {
        ticket: dataset.name.clone().into(),
    };
    let endpoint = FlightEndpoint::new()
        .with_ticket(ticket)
        .with_location(context.data_location());
    let info = FlightInfo::new()
        .try_with_schema(&view.schema.arrow)
        .map_err(internal)?
        .with_descriptor(FlightDescriptor::new_path(vec![dataset.name.clone()]))
        .with_endpoint(endpoint)
        .with_total_records(i64::try_from(view.live).unwrap_or(i64::MAX))
        .with_total_bytes(i64::try_from(view.bytes()).unwrap_or(i64::MAX));
    Ok(info)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CriteriaObject {
    name: Option<String>,
    filters: Option<Vec<Value>>,
}

/// What a listing is restricted to.
struct Wanted {
    name: Option<String>,
    conditions: Vec<(OnDataset, Comparison, String)>,
}

enum OnDataset {
    Name,
    Rows,
}

impl Wanted {
    fn parse(expression: &[u8]) -> Result<Self, Status> {
        if expression.is_empty() {
            return Ok(Wanted {
                name: None,
                conditions: Vec::new(),
            });
        }
        let object: CriteriaObject = json::read(expression, "criteria", &["name", "filters"])?;
        let mut bound = Vec::new();
        for condition in conditions(object.filters).map_err(refused)? {
            let field = match condition.field.as_str() {
                "name" => OnDataset::Name,
                "rows" if condition.value.parse::<u64>().is_ok() => OnDataset::Rows,
                "rows" => {
                    let text = format!(
                        "the filter on 'rows' has the value '{}'; expected a count",
                        condition.value
                    );
                    return Err(invalid("filter_value", &text));
                }
                other => {
                    let text = format!("datasets have no field '{other}'; filter on name or rows");
                    return Err(invalid("column_not_found", &text));
                }
            };
            bound.push((field, condition.comparison, condition.value));
        }
        Ok(Wanted {
            name: object.name,
            conditions: bound,
        })
    }

    fn passes(&self, dataset: &Dataset) -> bool {
        self.name.as_ref().is_none_or(|name| *name == dataset.name)
            && self.conditions.iter().all(|(field, comparison, value)| {
                let order = match field {
                    OnDataset::Name => dataset.name.as_str().cmp(value.as_str()),
                    // Checked to be a count when the criteria were read.
                    OnDataset::Rows => dataset.view().live.cmp(&value.parse().unwrap_or(u64::MAX)),
                };
                holds(*comparison, order)
            })
    }
}

fn holds(comparison: Comparison, order: std::cmp::Ordering) -> bool {
    match comparison {
        Comparison::Eq => order.is_eq(),
        Comparison::Ne => order.is_ne(),
        Comparison::Gt => order.is_gt(),
        Comparison::Ge => order.is_ge(),
        Comparison::Lt => order.is_lt(),
        Comparison::Le => order.is_le(),
    }
}

fn internal(error: arrow_schema::ArrowError) -> Status {
    status(Code::Internal, "encode", &error.to_string())
}
