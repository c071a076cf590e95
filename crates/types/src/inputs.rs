//! What a configuration is made from, and what each layer of it gives.

use std::path::PathBuf;

use crate::error::{ConfigError, Source};
use crate::host::{self, Host};
use crate::names;
use crate::options::{self, OPTIONS, Spec};

/// What all our environment variables begin with.
pub(crate) const PREFIX: &str = "LONGBOW_";

/// Variables with our prefix that are no options: the path of the file, and the binary that the Python tests start.
const OTHER_VARIABLES: [&str; 2] = ["LONGBOW_CONFIG", "LONGBOW_BIN"];

/// A configuration file, read.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its TOML.
    pub text: String,
}

/// All that a configuration is made from.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Names without dashes, and values.
    pub flags: Vec<(String, String)>,
    /// The variables of the environment; those without our prefix are passed over.
    pub environment: Vec<(String, String)>,
    /// The file, if one was named.
    pub file: Option<ConfigFile>,
    /// What defaults depend on.
    pub host: Host,
}

impl Inputs {
    /// Takes the environment of this process, and reads the file that `config` or else `LONGBOW_CONFIG` names.
    ///
    /// # Errors
    /// If that file can't be read.
    pub fn of_process(
        flags: Vec<(String, String)>,
        config: Option<PathBuf>,
    ) -> Result<Inputs, ConfigError> {
        let named = config.or_else(|| std::env::var_os("LONGBOW_CONFIG").map(PathBuf::from));
        let file = match named.filter(|path| !path.as_os_str().is_empty()) {
            None => None,
            Some(path) => match host::read_text(&path) {
                Ok(text) => Some(ConfigFile { path, text }),
                Err(source) => return Err(ConfigError::Unreadable { path, source }),
            },
        };
        // A name or a value that is not UTF-8 becomes one with replacement characters, which no option takes.
        let environment = std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .collect();
        Ok(Inputs {
            flags,
            environment,
            file,
            host: Host::probe(),
        })
    }
}

/// A value as it was given, for one option.
pub(crate) struct Given {
    pub(crate) spec: &'static Spec,
    pub(crate) text: String,
    pub(crate) source: Source,
}

impl Inputs {
    /// What the flags set.
    pub(crate) fn flag_layer(&self) -> Result<Vec<Given>, ConfigError> {
        let given = self.flags.iter().map(|(name, text)| {
            let key = name.replace('-', "_");
            let source = Source::Flag(name.clone());
            match find(&key) {
                Some(spec) => Ok(Given {
                    spec,
                    text: text.clone(),
                    source,
                }),
                None => {
                    let nearest = nearest(&key, |key| format!("--{}", options::flag(key)));
                    Err(ConfigError::Unknown {
                        origin: source,
                        nearest,
                    })
                }
            }
        });
        given.collect()
    }

    /// What the environment sets.
    pub(crate) fn environment_layer(&self) -> Result<Vec<Given>, ConfigError> {
        let mut layer = Vec::new();
        for (name, text) in &self.environment {
            let Some(rest) = name.strip_prefix(PREFIX) else {
                continue;
            };
            if OTHER_VARIABLES.contains(&name.as_str()) || is_service_link(rest, text) {
                continue;
            }
            let source = Source::Environment(name.clone());
            match find(&rest.to_ascii_lowercase())
                .filter(|_| rest.bytes().all(|b| !b.is_ascii_lowercase()))
            {
                Some(spec) => layer.push(Given {
                    spec,
                    text: text.clone(),
                    source,
                }),
                None => {
                    let nearest = nearest(&rest.to_ascii_lowercase(), options::variable);
                    return Err(ConfigError::Unknown {
                        origin: source,
                        nearest,
                    });
                }
            }
        }
        Ok(layer)
    }

    /// What the file sets.
    pub(crate) fn file_layer(&self) -> Result<Vec<Given>, ConfigError> {
        let Some(ConfigFile { path, text }) = &self.file else {
            return Ok(vec![]);
        };
        let table: toml::Table = text.parse().map_err(|source| ConfigError::NotToml {
            path: path.clone(),
            source: Box::new(source),
        })?;
        let given = table.iter().map(|(key, value)| {
            let source = Source::File {
                path: path.clone(),
                key: key.clone(),
            };
            match find(key) {
                Some(spec) => match file_text(value) {
                    Some(text) => Ok(Given { spec, text, source }),
                    None => {
                        let (value, allowed) = (
                            value.to_string().chars().take(200).collect(),
                            spec.kind.allowed(),
                        );
                        Err(ConfigError::BadValue {
                            name: spec.key,
                            value,
                            origin: source,
                            allowed,
                        })
                    }
                },
                None => Err(ConfigError::Unknown {
                    origin: source,
                    nearest: nearest(key, str::to_owned),
                }),
            }
        });
        given.collect()
    }
}

fn find(key: &str) -> Option<&'static Spec> {
    OPTIONS
        .iter()
        .find(|spec| spec.key == key || spec.aliases.contains(&key))
}

/// The known key nearest to `key`, spelled as `spell` does.
fn nearest(key: &str, spell: impl Fn(&str) -> String) -> Option<String> {
    let known = OPTIONS
        .iter()
        .flat_map(|spec| std::iter::once(spec.key).chain(spec.aliases.iter().copied()));
    names::nearest(key, known).map(spell)
}

/// Kubernetes gives every pod variables for each service of its namespace. For a service named `longbow` (or
/// `longbow-something`) they carry our prefix, and are no settings: `LONGBOW_SERVICE_HOST`, `LONGBOW_SERVICE_PORT_HTTP`,
/// `LONGBOW_PORT=tcp://…`, `LONGBOW_PORT_3000_TCP_ADDR`.
fn is_service_link(rest: &str, text: &str) -> bool {
    let rest = format!("_{rest}");
    let numbered = rest.match_indices("_PORT_").any(|(at, word)| {
        let tail = rest[at + word.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        ["_TCP", "_UDP", "_SCTP"]
            .iter()
            .any(|protocol| tail.starts_with(protocol))
    });
    let address = rest.ends_with("_PORT") && text.contains("://");
    numbered || address || rest.ends_with("_SERVICE_HOST") || rest.contains("_SERVICE_PORT")
}

/// A value of TOML as the text that a flag would have; `None` for tables, dates and nested lists.
fn file_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(n) => Some(n.to_string()),
        toml::Value::Float(n) => Some(n.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(items) => {
            let words: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            Some(words?.join(","))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        let error = Inputs::of_process(vec![], Some("/nonexistent/longbow.toml".into()))
            .expect_err("no such file");
        assert!(
            error.to_string().contains("/nonexistent/longbow.toml"),
            "{error}"
        );
    }

    #[test]
    fn lists_become_words_and_tables_become_nothing() {
        let table: toml::Table = "a = [\"x\", \"y\"]\nb = [1]\nc = 1.5\n[d]"
            .parse()
            .expect("TOML");
        assert_eq!(file_text(&table["a"]).as_deref(), Some("x,y"));
        assert_eq!(file_text(&table["b"]), None);
        assert_eq!(file_text(&table["c"]).as_deref(), Some("1.5"));
        assert_eq!(file_text(&table["d"]), None);
    }
}
