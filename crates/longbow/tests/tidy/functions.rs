//! Files and functions that a reader can hold in mind.

use crate::rust;
use crate::tree::Tree;

const MAX_FILE: usize = 500;
const MAX_FUNCTION: usize = 70;

/// No file of code is longer than 500 lines.
pub fn files_are_short(tree: &Tree) -> Vec<String> {
    let code = |path: &str| {
        [".rs", ".py", ".sh", "Makefile"]
            .iter()
            .any(|ending| path.ends_with(ending))
    };
    let long = |file: &&crate::tree::File| file.text.lines().count() > MAX_FILE;
    let files = tree
        .files
        .iter()
        .filter(|file| code(&file.path))
        .filter(long);
    files
        .map(|file| {
            format!(
                "{}: {} lines, more than {MAX_FILE}",
                file.path,
                file.text.lines().count()
            )
        })
        .collect()
}

/// No function is longer than 70 lines, signature included.
pub fn functions_are_short(tree: &Tree) -> Vec<String> {
    let rust = tree
        .with_ending(".rs")
        .flat_map(|file| of(&file.path, rust::functions(&rust::code(&file.text))));
    let python = tree
        .with_ending(".py")
        .flat_map(|file| of(&file.path, python_functions(&file.text)));
    rust.chain(python).collect()
}

fn of(path: &str, functions: Vec<(String, usize, usize)>) -> Vec<String> {
    let long = functions
        .into_iter()
        .filter(|(_, _, lines)| *lines > MAX_FUNCTION);
    long.map(|(name, first, lines)| {
        format!("{path}:{first}: {name} has {lines} lines, more than {MAX_FUNCTION}")
    })
    .collect()
}

/// Every `def`: its name, its first line and how many lines it has. It ends before the next line that is not indented
/// deeper, once the brackets of its signature are closed. Its documentation is not counted, as it isn't in Rust.
fn python_functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let Some(rest) = trimmed
            .strip_prefix("async ")
            .unwrap_or(trimmed)
            .strip_prefix("def ")
        else {
            continue;
        };
        let name = rest.split('(').next().unwrap_or_default().to_owned();
        let indent = line.len() - trimmed.len();
        let (mut open, mut last) = (brackets(line), first);
        for (i, line) in lines.iter().enumerate().skip(first + 1) {
            let blank = line.trim().is_empty();
            let deeper = line.len() - line.trim_start().len() > indent;
            if open <= 0 && !blank && !deeper {
                break;
            }
            if open > 0 {
                open += brackets(line);
            }
            if !blank {
                last = i;
            }
        }
        let documentation = documentation(&lines[first + 1..=last]);
        found.push((name, first + 1, last - first + 1 - documentation));
    }
    found
}

/// How many lines the string in triple quotes has that the function's body begins with.
fn documentation(lines: &[&str]) -> usize {
    const QUOTES: &str = "\"\"\"";
    let Some(start) = lines
        .iter()
        .position(|line| line.trim_start().starts_with(QUOTES))
    else {
        return 0;
    };
    // A statement before it makes it an ordinary string; the lines of a signature end with a bracket, a comma or a colon.
    if !lines[..start]
        .iter()
        .all(|line| line.trim_end().ends_with(['(', ',', ':', '*', '/']))
    {
        return 0;
    }
    if lines[start].trim().len() > QUOTES.len() && lines[start].trim_end().ends_with(QUOTES) {
        return 1;
    }
    let rest = &lines[start + 1..];
    rest.iter()
        .position(|line| line.contains(QUOTES))
        .map_or(0, |end| end + 2)
}

fn brackets(line: &str) -> i32 {
    line.chars()
        .map(|c| i32::from("([{".contains(c)) - i32::from(")]}".contains(c)))
        .sum()
}

#[test]
fn documentation_of_a_python_function_is_not_counted() {
    let text = "def f(\n    a,\n) -> int:\n    \"\"\"One.\n\n    Two.\n    \"\"\"\n    return 1\n";
    assert_eq!(python_functions(text), [("f".to_owned(), 1, 4)]);
    let text = "def g():\n    \"\"\"One.\"\"\"\n    return 1\n\ndef h():\n    x = f()\n    \"\"\"no doc\"\"\"\n";
    let expected = [("g".to_owned(), 1, 2), ("h".to_owned(), 5, 3)];
    assert_eq!(python_functions(text), expected);
}

#[test]
fn a_long_file_is_found() {
    let (long, short) = ("x\n".repeat(MAX_FILE + 1), "x\n".repeat(MAX_FILE));
    let tree = Tree::sample(&[
        ("a.rs", &long),
        ("b.rs", &short),
        ("c.tsv", &long),
        ("d.py", &long),
    ]);
    assert_eq!(
        files_are_short(&tree),
        [
            "a.rs: 501 lines, more than 500",
            "d.py: 501 lines, more than 500"
        ]
    );
}

#[test]
fn a_long_function_is_found() {
    let body = |lines: usize| "    x\n".repeat(lines);
    let rust = format!(
        "fn long() {{\n{}}}\nfn short() {{\n{}}}\n",
        body(69),
        body(68)
    );
    let python = format!(
        "async def long(\n    a,\n) -> int:\n{}\n\ndef short():\n{}",
        body(68),
        body(69)
    );
    let tree = Tree::sample(&[("a.rs", &rust), ("b.py", &python)]);
    let expected = [
        "a.rs:1: long has 71 lines, more than 70",
        "b.py:1: long has 71 lines, more than 70",
    ];
    assert_eq!(functions_are_short(&tree), expected);
}
