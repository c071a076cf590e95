//! Record batches as Flight messages.

use arrow_array::RecordBatch;
use arrow_flight::{FlightData, SchemaAsIpc};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::Schema;
use tonic::{Code, Status};

use crate::pieces::Progress;
use crate::status::status;

/// The first message of a stream.
pub(crate) fn schema(schema: &Schema) -> FlightData {
    SchemaAsIpc::new(schema, &IpcWriteOptions::default()).into()
}

/// A batch without dictionaries, copied once.
///
/// # Errors
/// Internal, if Arrow cannot encode what it decoded.
pub(crate) fn batch(batch: &RecordBatch) -> Result<FlightData, Status> {
    let mut dictionaries = DictionaryTracker::new(true);
    let encoded = IpcDataGenerator::default().encode(
        batch,
        &mut dictionaries,
        &IpcWriteOptions::default(),
        &mut IpcWriteContext::default(),
    );
    let (_, encoded) =
        encoded.map_err(|error| status(Code::Internal, "encode", &error.to_string()))?;
    Ok(encoded.into())
}

/// A batch that answers some of many queries.
///
/// # Errors
/// As [`batch`].
pub(crate) fn piece(reply: &RecordBatch, progress: &Progress<'_>) -> Result<FlightData, Status> {
    Ok(batch(reply)?.with_app_metadata(progress.body()))
}
