//! Actions of Flight SQL: statements are prepared and closed.

use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, Any, ProstMessageExt,
};
use arrow_flight::{Action, IpcMessage, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::Schema;
use bytes::Bytes;
use prost::Message;
use tonic::{Code, Status};

use super::alone;
use crate::context::Shared;
use crate::status::{invalid, refused, status};

const PREPARE: &str = "CreatePreparedStatement";
const CLOSE: &str = "ClosePreparedStatement";

/// The actions of Flight SQL that this node has.
pub(crate) const ACTIONS: [(&str, &str); 2] = [
    (PREPARE, "Flight SQL: prepares a statement"),
    (CLOSE, "Flight SQL: forgets a prepared statement"),
];

/// Carries out an action of Flight SQL.
///
/// # Errors
/// As the statement says.
pub(crate) async fn action(context: &Shared, action: &Action) -> Result<Vec<Bytes>, Status> {
    if action.r#type == CLOSE {
        let request: ActionClosePreparedStatementRequest = read(&action.body)?;
        context.prepared.close(&request.prepared_statement_handle);
        return Ok(Vec::new());
    }
    let request: ActionCreatePreparedStatementRequest = read(&action.body)?;
    alone(request.transaction_id.as_ref())?;
    let described = context
        .sql
        .describe(&request.query, None)
        .await
        .map_err(refused)?;
    let schema = described.schema.as_ref();
    let result = ActionCreatePreparedStatementResult {
        dataset_schema: schema.map_or(Ok(Bytes::new()), |schema| encoded(schema))?,
        parameter_schema: encoded(&described.parameters)?,
        prepared_statement_handle: context.prepared.keep(&request.query),
    };
    Ok(vec![result.as_any().encode_to_vec().into()])
}

fn read<M: ProstMessageExt + Default>(body: &[u8]) -> Result<M, Status> {
    let unpacked = Any::decode(body)
        .ok()
        .and_then(|any| any.unpack::<M>().ok().flatten());
    unpacked.ok_or_else(|| {
        let text = format!(
            "the action's body is no {}; send what Flight SQL says",
            M::type_url()
        );
        invalid("bad_message", &text)
    })
}

/// A schema as Flight SQL packs it into messages.
pub(super) fn encoded(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let message: Result<IpcMessage, _> = SchemaAsIpc::new(schema, &options).try_into();
    let IpcMessage(bytes) =
        message.map_err(|error| status(Code::Internal, "encode", &error.to_string()))?;
    Ok(bytes)
}
