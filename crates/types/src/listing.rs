//! The table of options for readers: as text for a terminal, as Markdown for the documentation.

use std::fmt::Write;

use crate::options::{Availability, OPTIONS};
use crate::resolve::Resolved;

/// All settings, one a paragraph: name, value, source, meaning, what is allowed.
pub fn text(resolved: &Resolved) -> String {
    let mut out = String::new();
    for setting in &resolved.settings {
        let spec = setting.spec;
        let value = setting.value.to_string();
        let value = if value.is_empty() { "(empty)" } else { &value };
        let later = match spec.availability {
            Availability::Now => "",
            Availability::NotYet => "; not available in this version",
        };
        let allowed = spec.kind.allowed();
        // Writing into a string can't fail.
        let _ = writeln!(
            out,
            "{} = {value}    [{}]\n    {} Allowed: {allowed}{later}.",
            spec.key, setting.source, spec.meaning
        );
    }
    out
}

/// The page `docs/configuration.md`.
pub fn markdown() -> String {
    let mut out = String::from(HEAD);
    table(&mut out, Availability::Now);
    out.push_str(LATER);
    table(&mut out, Availability::NotYet);
    out
}

const HEAD: &str = "\
# Configuration

Each option is a flag of `longbow serve`, an environment variable, and a key of a TOML file (named by `--config` or
`LONGBOW_CONFIG`). A flag wins over the environment, the environment over the file, the file over the default. For example
`hnsw_m` is `--hnsw-m 32`, `LONGBOW_HNSW_M=32`, or `hnsw_m = 32`. An unknown name or a value that is not allowed stops the
start with exit code 2 and a message that says what would be right. `longbow config` prints every value in force and where
it came from; `longbow config --markdown` prints this page.

Bytes are written plain or with a unit (`64MiB`, `1GB`), times with a unit (`200ms`, `1s`, `1h30m`; `0` is none).

";

const LATER: &str = "
## Not available in this version

These names are known and refused unless they stay at their default: a setting that nothing reads would be a lie.

";

fn table(out: &mut String, availability: Availability) {
    out.push_str("| key | default | meaning | allowed |\n|---|---|---|---|\n");
    for spec in OPTIONS
        .iter()
        .filter(|spec| spec.availability == availability)
    {
        let aliases: String = spec
            .aliases
            .iter()
            .map(|alias| format!(" (also `{alias}`)"))
            .collect();
        let default = match spec.fallback {
            crate::Fallback::Text("") => "empty".to_owned(),
            crate::Fallback::Text(text) => format!("`{text}`"),
            crate::Fallback::Host(words, _) => words.to_owned(),
        };
        let _ = writeln!(
            out,
            "| `{}`{aliases} | {default} | {} | {} |",
            spec.key,
            spec.meaning,
            spec.kind.allowed()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Inputs, resolve};

    #[test]
    fn both_listings_name_every_option() {
        let flags = vec![("hnsw-m".to_owned(), "32".to_owned())];
        let inputs = Inputs {
            flags,
            environment: vec![],
            file: None,
            host: Host::example(),
        };
        let text = text(&resolve(&inputs).expect("valid"));
        let page = markdown();
        for spec in OPTIONS.iter() {
            assert!(text.contains(&format!("{} = ", spec.key)), "{}", spec.key);
            assert!(page.contains(&format!("| `{}`", spec.key)), "{}", spec.key);
        }
        assert!(text.contains("hnsw_m = 32    [flag --hnsw-m]"), "{text}");
        assert!(text.contains("not available in this version"), "{text}");
    }
}
