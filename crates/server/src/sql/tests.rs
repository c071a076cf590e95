//! Commands of Flight SQL with bytes changed: answered or refused, and what is refused is the client's fault.

use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, CommandGetCatalogs,
    CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes,
    CommandGetTables, CommandGetXdbcTypeInfo, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementSubstraitPlan, CommandStatementUpdate, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{Action, FlightDescriptor};
use futures::StreamExt;
use proptest::prelude::*;
use prost::Message;
use tonic::{Code, Status};

use super::{ACTIONS, action, command, get, info};
use crate::context::Shared;
use crate::hostile::{NODE, changed, changes};

const SELECT: &str = "SELECT id, word FROM docs WHERE id > 0 ORDER BY id LIMIT 5";

/// One of each command, packed.
fn commands() -> Vec<Vec<u8>> {
    let pattern = || Some("%o_s%".to_owned());
    let packed = [
        CommandStatementQuery {
            query: SELECT.into(),
            transaction_id: None,
        }
        .as_any(),
        CommandStatementUpdate {
            query: "DELETE FROM docs WHERE id = 7".into(),
            transaction_id: None,
        }
        .as_any(),
        TicketStatementQuery {
            statement_handle: SELECT.into(),
        }
        .as_any(),
        CommandPreparedStatementQuery {
            prepared_statement_handle: 1u64.to_be_bytes().to_vec().into(),
        }
        .as_any(),
        CommandPreparedStatementUpdate {
            prepared_statement_handle: 1u64.to_be_bytes().to_vec().into(),
        }
        .as_any(),
        CommandStatementSubstraitPlan::default().as_any(),
        CommandStatementIngest {
            table: "docs".into(),
            ..CommandStatementIngest::default()
        }
        .as_any(),
        CommandGetCatalogs {}.as_any(),
        CommandGetDbSchemas {
            catalog: Some("longbow".into()),
            db_schema_filter_pattern: pattern(),
        }
        .as_any(),
        CommandGetTables {
            catalog: None,
            db_schema_filter_pattern: pattern(),
            table_name_filter_pattern: pattern(),
            table_types: vec!["TABLE".into()],
            include_schema: true,
        }
        .as_any(),
        CommandGetTableTypes {}.as_any(),
        CommandGetPrimaryKeys {
            table: "docs".into(),
            ..CommandGetPrimaryKeys::default()
        }
        .as_any(),
        CommandGetSqlInfo {
            info: vec![0, 1, 500],
        }
        .as_any(),
        CommandGetXdbcTypeInfo { data_type: Some(4) }.as_any(),
        ActionCreatePreparedStatementRequest {
            query: SELECT.into(),
            transaction_id: None,
        }
        .as_any(),
        ActionClosePreparedStatementRequest {
            prepared_statement_handle: 1u64.to_be_bytes().to_vec().into(),
        }
        .as_any(),
    ];
    packed.iter().map(Message::encode_to_vec).collect()
}

/// Asks for the info of a command and for its rows, and carries it out as an action.
async fn ask(context: &Shared, bytes: &[u8]) -> Vec<Status> {
    let mut refused = Vec::new();
    match command(bytes) {
        Err(status) => refused.push(status),
        Ok(None) => {}
        Ok(Some(found)) => {
            let descriptor = FlightDescriptor::new_cmd(bytes.to_vec());
            match get(context, &found).await {
                Ok(mut rows) => {
                    while let Some(row) = rows.next().await {
                        refused.extend(row.err());
                    }
                }
                Err(status) => refused.push(status),
            }
            refused.extend(info(context, found, &descriptor).await.err());
        }
    }
    for name in ACTIONS.map(|(name, _)| name) {
        let asked = Action::new(name, bytes.to_vec());
        refused.extend(action(context, &asked).await.err());
    }
    refused
}

proptest! {
    #[test]
    fn commands_with_changed_bytes_are_the_clients_fault(
        command in prop::sample::select(commands()),
        changes in changes(),
    ) {
        let bytes = changed(&command, changes);
        let refused = NODE.runtime.block_on(ask(&NODE.context, &bytes));
        for status in refused {
            prop_assert!(!matches!(status.code(), Code::Internal | Code::Unknown), "{:?}", status);
        }
    }
}

#[test]
fn a_command_that_is_not_changed_is_answered() {
    let refused = NODE.runtime.block_on(ask(&NODE.context, &commands()[2]));
    // As a ticket it is answered; it is none that has an info, and no action.
    let codes: Vec<Code> = refused.iter().map(Status::code).collect();
    assert_eq!(
        codes,
        [
            Code::Unimplemented,
            Code::InvalidArgument,
            Code::InvalidArgument
        ],
        "{refused:?}"
    );
}
