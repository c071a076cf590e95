//! What there is: flight infos and schemas.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_flight::{
    Criteria, FlightDescriptor, FlightEndpoint, FlightInfo, SchemaAsIpc, SchemaResult, Ticket,
};
use arrow_ipc::writer::IpcWriteOptions;
use longbow_engine::Dataset;
use longbow_query::Conditions;
use serde::Deserialize;
use serde_json::Value;
use tonic::{Code, Status};

use crate::context::Shared;
use crate::json;
use crate::put::dataset_of;
use crate::status::{of, refused, status};

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
    let datasets = wanted.of(context.engine.catalog().datasets())?;
    datasets
        .iter()
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
    #[serde(default, deserialize_with = "longbow_query::once::values")]
    filters: Option<Vec<Value>>,
    #[serde(rename = "where")]
    predicate: Option<String>,
}

/// What a listing is restricted to.
struct Wanted {
    name: Option<String>,
    conditions: Option<Conditions>,
}

impl Wanted {
    fn parse(expression: &[u8]) -> Result<Self, Status> {
        if expression.is_empty() {
            return Ok(Wanted {
                name: None,
                conditions: None,
            });
        }
        let object: CriteriaObject =
            json::read(expression, "criteria", &["name", "filters", "where"])?;
        let conditions = Conditions::read(object.filters, object.predicate).map_err(refused)?;
        Ok(Wanted {
            name: object.name,
            conditions,
        })
    }

    /// Those of the datasets that are wanted.
    fn of(&self, datasets: Vec<Arc<Dataset>>) -> Result<Vec<Arc<Dataset>>, Status> {
        let Some(conditions) = &self.conditions else {
            let named = |dataset: &Arc<Dataset>| {
                self.name.as_ref().is_none_or(|name| *name == dataset.name)
            };
            return Ok(datasets.into_iter().filter(named).collect());
        };
        let names = datasets.iter().map(|dataset| Some(&dataset.name));
        let names: StringArray = names.collect();
        let rows = datasets.iter().map(|dataset| dataset.view().live);
        let rows = UInt64Array::from_iter_values(rows);
        let columns: [(&str, ArrayRef); 2] = [("name", Arc::new(names)), ("rows", Arc::new(rows))];
        let table = RecordBatch::try_from_iter(columns).map_err(internal)?;
        let mask = conditions.mask("ListFlights", &table).map_err(refused)?;
        let passing = datasets.into_iter().enumerate().filter(|(at, dataset)| {
            let named = self.name.as_ref().is_none_or(|name| *name == dataset.name);
            named && mask.is_valid(*at) && mask.value(*at)
        });
        Ok(passing.map(|(_, dataset)| dataset).collect())
    }
}

fn internal(error: arrow_schema::ArrowError) -> Status {
    status(Code::Internal, "encode", &error.to_string())
}
