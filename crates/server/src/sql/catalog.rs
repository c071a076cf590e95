//! The catalog: what there is, as Flight SQL asks for it.

use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{Command, CommandGetPrimaryKeys, SqlInfo};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use longbow_engine::Error;
use longbow_query::sql::{CATALOG, DATASETS, SYSTEM};
use tonic::{Code, Status};

use crate::context::Shared;
use crate::status::{of, status};

/// The kinds of tables.
const KINDS: [&str; 2] = ["SYSTEM TABLE", "TABLE"];

/// What this node says of its SQL.
static ABOUT: LazyLock<Option<SqlInfoData>> = LazyLock::new(|| {
    let mut about = SqlInfoDataBuilder::new();
    about.append(SqlInfo::FlightSqlServerName, "Longbow");
    about.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    about.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    about.append(SqlInfo::FlightSqlServerReadOnly, false);
    about.append(SqlInfo::FlightSqlServerSql, true);
    about.append(SqlInfo::FlightSqlServerSubstrait, false);
    // None.
    about.append(SqlInfo::FlightSqlServerTransaction, 0i32);
    about.append(SqlInfo::FlightSqlServerCancel, false);
    about.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    about.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    about.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    about.append(SqlInfo::SqlDdlCatalog, false);
    about.append(SqlInfo::SqlDdlSchema, false);
    about.append(SqlInfo::SqlDdlTable, false);
    about.build().ok()
});

/// The answer to a command that asks for the catalog; nothing if it is another one.
///
/// # Errors
/// NotFound for a table that is asked for by name.
pub(super) fn answer(context: &Shared, command: &Command) -> Result<Option<RecordBatch>, Status> {
    let told = match command.clone() {
        Command::CommandGetCatalogs(command) => {
            let mut told = command.into_builder();
            told.append(CATALOG);
            told.build()
        }
        Command::CommandGetDbSchemas(command) => {
            let mut told = command.into_builder();
            for schema in ["information_schema", SYSTEM, DATASETS] {
                told.append(CATALOG, schema);
            }
            told.build()
        }
        Command::CommandGetTables(command) => {
            let mut told = command.into_builder();
            for (schema, name, columns) in context.sql.tables().map_err(crate::status::refused)? {
                let kind = KINDS[usize::from(schema == DATASETS)];
                let appended = told.append(CATALOG, schema, name, kind, &columns);
                appended.map_err(internal)?;
            }
            told.build()
        }
        Command::CommandGetTableTypes(command) => {
            let mut told = command.into_builder();
            KINDS.iter().for_each(|kind| told.append(kind));
            told.build()
        }
        Command::CommandGetSqlInfo(command) => {
            let about = ABOUT
                .as_ref()
                .ok_or_else(|| status(Code::Internal, "encode", "no facts of SQL; report this"))?;
            command.into_builder(about).build()
        }
        Command::CommandGetPrimaryKeys(command) => return keys(context, &command).map(Some),
        _ => return Ok(None),
    };
    told.map(Some).map_err(internal)
}

/// Every dataset has one key, its ids.
fn keys(context: &Shared, command: &CommandGetPrimaryKeys) -> Result<RecordBatch, Status> {
    let dataset = context.engine.catalog().find(&command.table);
    let dataset = dataset.ok_or_else(|| of(&Error::DatasetNotFound(command.table.clone())))?;
    let text = |name, value: &str, nullable| {
        let column: ArrayRef = Arc::new(StringArray::from(vec![value]));
        (Field::new(name, DataType::Utf8, nullable), column)
    };
    let columns = [
        text("catalog_name", CATALOG, true),
        text("db_schema_name", DATASETS, true),
        text("table_name", &dataset.name, false),
        text("column_name", "id", false),
        (
            Field::new("key_sequence", DataType::Int32, false),
            Arc::new(Int32Array::from(vec![1])) as _,
        ),
        text("key_name", "id", true),
    ];
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|error: ArrowError| status(Code::Internal, "encode", &error.to_string()))
}

fn internal(error: impl std::fmt::Display) -> Status {
    status(Code::Internal, "encode", &error.to_string())
}
