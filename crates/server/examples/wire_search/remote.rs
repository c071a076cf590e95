//! A client of the server: one kept connection.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Int32Array, ListArray, RecordBatch, StringArray};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{FlightDescriptor, Ticket};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

use crate::Outcome;
use crate::data::DATASET;

/// Queries that the client puts into one message.
const MESSAGE: usize = 512;

#[derive(Serialize)]
struct Search<'a> {
    search: Object<'a>,
}

#[derive(Serialize)]
struct Object<'a> {
    dataset: &'a str,
    vector: &'a [f32],
    k: usize,
    ef: usize,
}

/// The connection, and the thread that serves it.
pub struct Remote {
    runtime: Runtime,
    client: FlightServiceClient<Channel>,
    k: usize,
    ef: usize,
}

impl Remote {
    /// Connects.
    pub fn connect(uri: &str, k: usize, ef: usize) -> Outcome<Remote> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let endpoint = Endpoint::from_shared(uri.to_owned())?.tcp_nodelay(true);
        let channel = runtime.block_on(endpoint.connect())?;
        let client = FlightServiceClient::new(channel)
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        Ok(Remote {
            runtime,
            client,
            k,
            ef,
        })
    }

    /// One query by `DoGet`.
    pub fn one(&mut self, vector: &[f32]) -> Outcome<RecordBatch> {
        let search = Object {
            dataset: DATASET,
            vector,
            k: self.k,
            ef: self.ef,
        };
        let ticket = serde_json::to_vec(&Search { search })?;
        let client = &mut self.client;
        self.runtime.block_on(async {
            let answer = client.do_get(Ticket::new(ticket)).await?.into_inner();
            let answer = answer.map_err(Into::into);
            let mut batches = FlightRecordBatchStream::new_from_flight_data(answer);
            let first = batches.next().await.ok_or("an answer without rows")??;
            match batches.next().await {
                None => Ok(first),
                Some(_) => Err("a single query was answered in pieces".into()),
            }
        })
    }

    /// The messages that ask many queries.
    pub fn messages(&self, vectors: &[Vec<f32>]) -> Outcome<Vec<RecordBatch>> {
        let message = |part: &[Vec<f32>]| {
            let rows = part.len();
            let lists = part
                .iter()
                .map(|vector| Some(vector.iter().copied().map(Some)));
            let vectors = ListArray::from_iter_primitive::<Float32Type, _, _>(lists);
            let number = |n: usize| Int32Array::from(vec![n as i32; rows]);
            let columns: [(&str, ArrayRef); 4] = [
                ("dataset", Arc::new(StringArray::from(vec![DATASET; rows]))),
                ("k", Arc::new(number(self.k))),
                ("ef", Arc::new(number(self.ef))),
                ("query_vector", Arc::new(vectors)),
            ];
            RecordBatch::try_from_iter(columns)
        };
        Ok(vectors
            .chunks(MESSAGE)
            .map(message)
            .collect::<Result<_, _>>()?)
    }

    /// Many queries by `DoExchange`.
    pub fn many(&mut self, messages: &[RecordBatch]) -> Outcome<Vec<RecordBatch>> {
        let descriptor = FlightDescriptor {
            r#type: DescriptorType::Cmd as i32,
            cmd: "VectorSearch".into(),
            path: Vec::new(),
        };
        let queries = stream::iter(messages.to_vec()).map(Ok);
        let asked = FlightDataEncoderBuilder::new()
            .with_flight_descriptor(Some(descriptor))
            .build(queries)
            .map(|message| message.unwrap_or_default());
        let client = &mut self.client;
        self.runtime.block_on(async {
            let answers = client.do_exchange(asked).await?.into_inner();
            let answers = answers.map_err(Into::into);
            let batches = FlightRecordBatchStream::new_from_flight_data(answers);
            Ok(batches.try_collect().await?)
        })
    }
}
