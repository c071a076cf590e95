//! Everything that reads what a client wrote: tickets, searches, filters, actions, predicates, statements, queries of words,
//! cursors and rows as JSON, made by their grammars, and made of good ones by mutation.
//!
//! Whatever comes, nothing panics, no request costs more than a bound of processor time and memory, and a refused one
//! has written nothing: the log is where it was. `FUZZ_CASES` or `FUZZ_SECONDS` say how long it runs, `FUZZ_SEED` how
//! it begins; a case is repeated by `FUZZ_SEED` and `FUZZ_FROM`, which stand in the file that is named at the start.

mod grammar;
mod guard;
mod large;
mod mutate;
#[path = "../common/random.rs"]
mod random;
#[path = "../common/table.rs"]
mod table;
mod typed;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::guard::{Watch, count_panics, panics};
use crate::random::{Random, mix};
use crate::world::{WAYS, Way, World};

/// What a request costs is measured over the whole process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn what_is_too_large_or_wrong_is_refused_by_its_code_and_costs_little() {
    let _alone = ALONE.lock();
    let complaints = large::check(&World::new());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Good requests of each way, of which others are made.
const SEEDS: usize = 40;

fn number(name: &str) -> Option<u64> {
    let said = std::env::var(name).ok()?;
    Some(
        said.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

/// A request by the grammar of a way in.
fn by_grammar(random: &mut Random, way: Way) -> Vec<u8> {
    match way {
        Way::Ticket => grammar::ticket(random).to_string(),
        Way::Search | Way::Action("HybridSearch") => grammar::search(random).to_string(),
        Way::Action(_) => grammar::action(random).to_string(),
        Way::Where => grammar::predicate(random),
        Way::Statement | Way::Describe => grammar::statement(random),
        Way::Words => grammar::words(random),
        Way::Cursor => grammar::cursor(random),
        Way::Rows => grammar::rows(random).to_string(),
    }
    .into_bytes()
}

/// The first of a request, and what it is of.
fn shown(way: Way, bytes: &[u8], case: u64) -> String {
    let text: String = String::from_utf8_lossy(bytes).chars().take(2_000).collect();
    format!("case {case}, {way:?}, {} bytes: {text}", bytes.len())
}

#[test]
fn whatever_is_asked_nothing_panics_costs_too_much_or_changes_by_being_refused() {
    count_panics();
    let seed = number("FUZZ_SEED").unwrap_or(0xF0);
    let from = number("FUZZ_FROM").unwrap_or(0);
    let seconds = number("FUZZ_SECONDS").map(Duration::from_secs);
    let cases = number("FUZZ_CASES").unwrap_or(4_000);
    let note = concat!(env!("CARGO_TARGET_TMPDIR"), "/fuzz-case");
    eprintln!("seed {seed}; the case under way is in {note}");
    let _alone = ALONE.lock();
    let world = World::new();
    let mut random = Random(seed);
    let seeds = WAYS.map(|way| {
        let one = |_| by_grammar(&mut random, way);
        (0..SEEDS).map(one).collect::<Vec<_>>()
    });
    let everything: Vec<Vec<u8>> = seeds.iter().flatten().cloned().collect();
    let watch = Watch::default();
    let started = Instant::now();
    let mut told = BTreeMap::<String, [u64; 2]>::new();
    let mut case = from;
    watch.over(|| {
        while seconds.map_or(case < from + cases, |limit| started.elapsed() < limit) {
            let mut random = Random(mix(seed ^ mix(case)));
            let at = random.below(WAYS.len() as u64) as usize;
            let bytes = match random.once_in(2) {
                true => by_grammar(&mut random, WAYS[at]),
                false => {
                    let good = random.pick(&seeds[at]).clone();
                    mutate::mutate(&mut random, &good, &everything)
                }
            };
            std::fs::write(note, format!("FUZZ_SEED={seed} FUZZ_FROM={case}")).expect("a note");
            let refused = check(&world, &watch, WAYS[at], &bytes, case);
            told.entry(format!("{:?}", WAYS[at])).or_default()[usize::from(refused)] += 1;
            case += 1;
        }
    });
    let elapsed = started.elapsed();
    eprintln!(
        "{} cases in {elapsed:?}; answered and refused: {told:?}",
        case - from
    );
    for (way, [answered, refused]) in told {
        assert!(
            answered > 0 && refused > 0 || case - from < 1_000,
            "{way}: one-sided"
        );
    }
}

/// Makes a request and checks what must hold; whether it was refused.
fn check(world: &World, watch: &Watch, way: Way, bytes: &[u8], case: u64) -> bool {
    let shown = shown(way, bytes, case);
    let before = world.engine.log_indices().0;
    let begin = watch.begin(shown.clone());
    let answer = world.ask(way, bytes);
    let cost = begin.check();
    watch.end();
    assert_eq!(panics(), 0, "a thread panicked: {shown}");
    assert_eq!(cost, Ok(()), "{shown}\n{answer:?}");
    match answer {
        Ok(()) => {
            world.tidy_up();
            false
        }
        Err(refusal) => {
            assert_eq!(
                world.engine.log_indices().0,
                before,
                "refused and written: {shown}"
            );
            assert!(!refusal.code.contains("internal"), "{refusal}: {shown}");
            assert!(
                refusal.text.len() < 5_000,
                "{} bytes of refusal: {shown}",
                refusal.text.len()
            );
            true
        }
    }
}
