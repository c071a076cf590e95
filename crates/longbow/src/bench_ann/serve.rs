//! Passes on request, so that another program can alternate this index with others, round by round, in one run.
//!
//! A line in, a line out, all of them JSON. First comes `{"ready": report without points}`; then each request
//! `{"effort": 16, "batched": false}` is answered by the point of one pass, or by `{"error": "…"}`. Ends with the input.

use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};

use super::bench::Bench;
use super::error::Error;
use super::report::{Point, Report};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    effort: usize,
    batched: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer<'a> {
    Ready(&'a Report),
    Error(String),
    #[serde(untagged)]
    Point(Point),
}

/// Answers requests until there are no more.
pub fn serve(
    bench: &Bench,
    report: &Report,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Error> {
    let mut say = |answer: &Answer| -> Result<(), Error> {
        writeln!(output, "{}", serde_json::to_string(answer)?)?;
        Ok(output.flush()?)
    };
    say(&Answer::Ready(report))?;
    for line in input.lines() {
        say(&match point(bench, &line?) {
            Ok(point) => Answer::Point(point),
            Err(reason) => Answer::Error(reason),
        })?;
    }
    Ok(())
}

fn point(bench: &Bench, line: &str) -> Result<Point, String> {
    let request: Request = serde_json::from_str(line)
        .map_err(|error| format!("not understood: {error}; send effort and batched"))?;
    let figures = bench.figures(request.effort, request.batched);
    let figures = figures.map_err(|error| error.to_string())?;
    let figures: Vec<_> = figures.into_iter().collect();
    let point = match request.batched {
        true => Point::of(request.effort, &[], &figures),
        false => Point::of(request.effort, &figures, &[]),
    };
    point.ok_or_else(|| "this index takes one query a call".to_owned())
}
