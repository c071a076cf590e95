//! `DoAction`: JSON in, JSON out.

use arrow_flight::{Action, ActionType};
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use longbow_engine::{ColumnIndex, Engine, Id};
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::context::{Role, Shared, blocking};
use crate::get::observe_search;
use crate::json;
use crate::member::member;
use crate::status::{invalid, of, status, unimplemented};
use crate::ticket::{SearchObject, conditions};

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
    ("delete", None, "deletes rows by id, ids or filters"),
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
];

/// Actions of the contract that this version does not have.
const MISSING: &[(&str, &str)] = &[
    ("HybridSearch", "hybrid search ('HybridSearch')"),
    ("add-edge", "the graph ('add-edge')"),
    ("traverse-graph", "the graph ('traverse-graph')"),
    ("GetGraphStats", "the graph ('GetGraphStats')"),
];

/// The actions that a server offers.
pub(crate) fn list(role: Role) -> Vec<ActionType> {
    let served = ACTIONS
        .iter()
        .filter(|(_, only, _)| only.is_none_or(|only| only == role));
    served
        .map(|(name, _, what)| ActionType {
            r#type: (*name).into(),
            description: (*what).into(),
        })
        .collect()
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
        "delete" | "Delete" => delete(&context.engine, body),
        "delete-dataset" => {
            let dataset = required(read::<Named>(body, NAMED)?.dataset, "dataset")?;
            blocking(|| context.engine.drop_dataset(&dataset)).map_err(|error| of(&error))?;
            Ok(vec![Bytes::from_static(DELETED)])
        }
        _ => Ok(vec![json::body(&answer(context, name, body)?)]),
    }
}

fn answer(context: &Shared, name: &str, body: &[u8]) -> Result<Value, Status> {
    let engine = &context.engine;
    let refused = |error: longbow_engine::Error| of(&error);
    Ok(match name {
        "cluster-status" => {
            json!({"self": member(context), "members": [member(context)], "count": 1})
        }
        "MeshIdentity" => member(context),
        "MeshStatus" => json!([member(context)]),
        "DiscoveryStatus" => json!({"provider": "none", "peers": []}),
        "check_readiness" => readiness(engine, optional_dataset(body)?.as_deref()),
        "VectorSearchByID" => blocking(|| by_id(engine, body))?,
        "CreateNamespace" => {
            let namespace = required(read::<Named>(body, NAMED)?.name, "name")?;
            blocking(|| engine.create_namespace(&namespace)).map_err(refused)?;
            json!({"status": "created"})
        }
        "DeleteNamespace" => delete_namespace(engine, read(body, NAMED)?)?,
        "ListNamespaces" => {
            let namespaces = engine.catalog().namespaces();
            json!({"count": namespaces.len(), "namespaces": namespaces})
        }
        "GetTotalNamespaceCount" => json!({"count": engine.catalog().namespaces().len()}),
        "GetNamespaceDatasetCount" => {
            let namespace = required(read::<Named>(body, NAMED)?.name, "name")?;
            json!({"count": engine.catalog().datasets_in(&namespace).map_err(refused)?})
        }
        "ForceSnapshot" => {
            if let Some(dataset) = optional_dataset(body)? {
                engine.dataset(&dataset).map_err(refused)?;
            }
            json!({"status": "created", "snapshot": blocking(|| engine.checkpoint()).map_err(refused)?})
        }
        _ => return Err(status(Code::Internal, "unknown_action", name)),
    })
}

/// What a deletion answers.
const DELETED: &[u8] = b"deleted";

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Named {
    name: Option<String>,
    dataset: Option<String>,
}

const NAMED: &[&str] = &["name", "dataset"];

fn read<T: serde::de::DeserializeOwned>(body: &[u8], known: &[&str]) -> Result<T, Status> {
    json::read(body, "action's body", known)
}

fn optional_dataset(body: &[u8]) -> Result<Option<String>, Status> {
    if body.is_empty() {
        return Ok(None);
    }
    let named: Named = read(body, NAMED)?;
    Ok(named.dataset.or(named.name))
}

fn required(value: Option<String>, key: &str) -> Result<String, Status> {
    value.ok_or_else(|| {
        invalid(
            "missing_key",
            &format!("the action's body has no '{key}'; add it"),
        )
    })
}

fn readiness(engine: &Engine, dataset: Option<&str>) -> Value {
    let datasets = match dataset {
        None => engine.catalog().datasets(),
        Some(name) => match engine.catalog().find(name) {
            Some(dataset) => vec![dataset],
            None => return json!({"status": "NOT_FOUND", "reason": format!("no dataset '{name}'")}),
        },
    };
    let waiting: u64 = datasets.iter().map(|dataset| dataset.unindexed()).sum();
    let rows: u64 = datasets.iter().map(|dataset| dataset.view().live).sum();
    let mut index_len = 0;
    let mut indexes = Vec::new();
    for dataset in &datasets {
        for index in dataset.indexes().iter() {
            index_len += index.graph().len() as u64;
            indexes.push(describe_index(&dataset.name, index));
        }
    }
    let mut told =
        json!({"status": "READY", "index_len": index_len, "rows": rows, "indexes": indexes});
    if waiting > 0 {
        let reason = format!("{waiting} rows wait for the index; searches scan them exactly");
        told["status"] = "BUSY".into();
        told["reason"] = reason.into();
    }
    told
}

/// What the index of one vector column is, and what it costs.
fn describe_index(dataset: &str, index: &ColumnIndex) -> Value {
    let graph = index.graph();
    json!({
        "dataset": dataset,
        "column": index.column,
        "quantization": graph.quantization().name(),
        "rows": graph.len(),
        "bytes": graph.memory_bytes(),
        "calibrated": index.is_calibrated(),
        "recall": index.recall(),
        "bytes_per_row": graph.memory_bytes().checked_div(graph.len()),
    })
}

fn search(engine: &Engine, body: &[u8]) -> Result<Vec<Bytes>, Status> {
    let (dataset, request) = SearchObject::parse(body)?.into_request()?;
    let mut streams = Vec::with_capacity(request.vectors.len());
    for vector in &request.vectors {
        let one = longbow_engine::SearchRequest {
            vectors: vec![vector.clone()],
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ById {
    dataset: String,
    id: Id,
    k: Option<i64>,
}

fn by_id(engine: &Engine, body: &[u8]) -> Result<Value, Status> {
    let asked: ById = read(body, &["dataset", "id", "k"])?;
    let k = asked.k.unwrap_or(10);
    let refused = |error: longbow_engine::Error| of(&error);
    let k = usize::try_from(k).map_err(|_| {
        of(&longbow_engine::Error::BadK {
            got: k,
            max: longbow_engine::MAX_K,
        })
    })?;
    let vector = engine
        .vector_of(&asked.dataset, &asked.id, None)
        .map_err(refused)?;
    let request = longbow_engine::SearchRequest::nearest(vector, k);
    let found = engine.search(&asked.dataset, &request).map_err(refused)?;
    let ids: Vec<Value> = found
        .ids()
        .map_err(refused)?
        .into_iter()
        .map(|id| json!(id))
        .collect();
    Ok(json!({"ids": ids, "scores": found.scores()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deletion {
    dataset: String,
    id: Option<Id>,
    ids: Option<Vec<Id>>,
    filters: Option<Vec<Value>>,
    #[serde(rename = "where")]
    predicate: Option<String>,
}

fn delete(engine: &Engine, body: &[u8]) -> Result<Vec<Bytes>, Status> {
    let asked: Deletion = read(body, &["dataset", "id", "ids", "filters", "where"])?;
    if asked.predicate.is_some() {
        return Err(unimplemented("a SQL predicate ('where')"));
    }
    let ids = match (asked.id, asked.ids, asked.filters.is_some()) {
        (Some(id), None, false) => Some(vec![id]),
        (None, Some(ids), false) if !ids.is_empty() => Some(ids),
        (None, None, true) => None,
        _ => {
            let text = "the delete has none or several of 'id', 'ids' (not empty) and 'filters'; send one of them";
            return Err(invalid("bad_delete", text));
        }
    };
    let refused = |error: longbow_engine::Error| of(&error);
    blocking(|| {
        let pending = match ids {
            Some(ids) => engine.delete_ids(&asked.dataset, ids),
            None => engine.delete_where(&asked.dataset, &conditions(asked.filters)?),
        };
        pending.map_err(refused)?.wait().map_err(refused)
    })?;
    Ok(vec![Bytes::from_static(DELETED)])
}

fn delete_namespace(engine: &Engine, named: Named) -> Result<Value, Status> {
    let refused = |error: longbow_engine::Error| of(&error);
    let is_dataset = |name: &str| engine.catalog().find(name).is_some();
    match (named.dataset, named.name) {
        (Some(dataset), _) => blocking(|| engine.drop_dataset(&dataset)).map_err(refused)?,
        // Clients call a dataset a namespace here; a name that is only a dataset's means that.
        (None, Some(name))
            if is_dataset(&name) && !engine.catalog().namespaces().contains(&name) =>
        {
            blocking(|| engine.drop_dataset(&name)).map_err(refused)?
        }
        (None, Some(name)) => blocking(|| engine.delete_namespace(&name)).map_err(refused)?,
        (None, None) => {
            return Err(invalid(
                "missing_key",
                "the action's body has no 'name'; add it",
            ));
        }
    };
    Ok(json!({"status": "deleted"}))
}
