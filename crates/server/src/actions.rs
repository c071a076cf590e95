//! `DoAction`: JSON in, JSON out.

use arrow_flight::{Action, ActionType};
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use longbow_engine::Engine;
use longbow_query::{Answer, SearchObject};
use serde_json::json;
use tonic::{Code, Status};

use crate::context::{Role, Shared, blocking};
use crate::get::observe_search;
use crate::json;
use crate::member::member;
use crate::sql;
use crate::status::{of, refused, status, unimplemented};

/// Every action: its name, where it is served, and what it does.
pub(crate) const ACTIONS: &[(&str, Option<Role>, &str)] = &[
    (
        "cluster-status",
        None,
        "the members of the cluster; this node alone",
    ),
    ("MeshIdentity", Some(Role::Meta), "this node as a member"),
    ("MeshStatus", Some(Role::Meta), "the list of members"),
    (
        "DiscoveryStatus",
        Some(Role::Meta),
        "how members are found, and the peers",
    ),
    (
        "check_readiness",
        None,
        "READY when all rows are indexed, BUSY while they are not, NOT_FOUND",
    ),
    (
        "VectorSearch",
        None,
        "a search; one Arrow IPC stream a query",
    ),
    (
        "VectorSearchByID",
        None,
        "the neighbours of a stored row, itself among them",
    ),
    (
        "HybridSearch",
        None,
        "a search by vector, words or both; a list of objects",
    ),
    ("delete", None, "deletes rows by id, ids, filters or where"),
    ("Delete", None, "as delete"),
    ("delete-dataset", None, "drops a dataset"),
    ("CreateNamespace", Some(Role::Meta), "creates a namespace"),
    (
        "DeleteNamespace",
        Some(Role::Meta),
        "deletes an empty namespace, or a dataset",
    ),
    ("ListNamespaces", Some(Role::Meta), "the namespaces"),
    (
        "GetTotalNamespaceCount",
        Some(Role::Meta),
        "how many namespaces there are",
    ),
    (
        "GetNamespaceDatasetCount",
        Some(Role::Meta),
        "how many datasets a namespace holds",
    ),
    ("ForceSnapshot", None, "makes a checkpoint now"),
    (
        "Backup",
        None,
        "copies all datasets into a folder of that name",
    ),
];

/// Actions of the contract that this version does not have.
const MISSING: &[(&str, &str)] = &[
    ("add-edge", "the graph ('add-edge')"),
    ("traverse-graph", "the graph ('traverse-graph')"),
    ("GetGraphStats", "the graph ('GetGraphStats')"),
];

/// The actions that a server offers.
pub(crate) fn list(role: Role) -> Vec<ActionType> {
    let served = ACTIONS
        .iter()
        .filter(|(_, only, _)| only.is_none_or(|only| only == role));
    let served = served.map(|(name, _, what)| (*name, *what));
    let of_sql = sql::ACTIONS.into_iter().filter(|_| role == Role::Meta);
    let told = served.chain(of_sql).map(|(name, what)| ActionType {
        r#type: name.into(),
        description: what.into(),
    });
    told.collect()
}

/// Carries out an action.
///
/// # Errors
/// As the action says; Unimplemented for one that is unknown, or is the other server's.
pub(crate) fn run(context: &Shared, role: Role, action: &Action) -> Result<Vec<Bytes>, Status> {
    let name = action.r#type.as_str();
    if let Some((_, what)) = MISSING.iter().find(|(missing, _)| *missing == name) {
        return Err(unimplemented(what));
    }
    let Some((_, only, _)) = ACTIONS.iter().find(|(known, ..)| *known == name) else {
        let known = ACTIONS
            .iter()
            .map(|(known, ..)| *known)
            .collect::<Vec<_>>()
            .join(", ");
        let text = format!("there is no action '{name}'; known are {known}");
        return Err(status(Code::Unimplemented, "unknown_action", &text));
    };
    if only.is_some_and(|only| only != role) {
        let (other, address) = context.other(role);
        let text =
            format!("the action '{name}' is on the {other} server, {address}; call it there");
        return Err(status(Code::Unimplemented, "wrong_server", &text));
    }
    let body = &action.body;
    match name {
        "VectorSearch" => blocking(|| search(&context.engine, body)),
        "cluster-status" => Ok(vec![json::body(
            &json!({"self": member(context), "members": [member(context)], "count": 1}),
        )]),
        "MeshIdentity" => Ok(vec![json::body(&member(context))]),
        "MeshStatus" => Ok(vec![json::body(&json!([member(context)]))]),
        "DiscoveryStatus" => Ok(vec![json::body(&json!({"provider": "none", "peers": []}))]),
        _ => {
            let answer = blocking(|| longbow_query::run(&context.engine, name, body));
            Ok(match answer.map_err(refused)? {
                Answer::Deleted(_) => vec![Bytes::from_static(DELETED)],
                Answer::Json(value) => vec![json::body(&value)],
            })
        }
    }
}

/// What a deletion answers to who does not ask for more.
const DELETED: &[u8] = b"deleted";

fn search(engine: &Engine, body: &[u8]) -> Result<Vec<Bytes>, Status> {
    let (dataset, request) = SearchObject::parse(body)
        .and_then(SearchObject::into_request)
        .map_err(refused)?;
    let mut streams = Vec::with_capacity(request.vectors.len());
    let each = request.vectors.iter().map(|vector| vec![vector.clone()]);
    // Words and examples are one query, too.
    let none = request.vectors.is_empty().then(Vec::new);
    for vectors in each.chain(none) {
        let one = longbow_engine::SearchRequest {
            vectors,
            ..request.clone()
        };
        let found = engine.search(&dataset, &one).map_err(|error| of(&error))?;
        observe_search(&found);
        let mut stream = Vec::new();
        let written = StreamWriter::try_new(&mut stream, found.batch.schema_ref())
            .and_then(|mut writer| writer.write(&found.batch).and_then(|()| writer.finish()));
        written.map_err(|error| status(Code::Internal, "encode", &error.to_string()))?;
        streams.push(stream.into());
    }
    Ok(streams)
}
