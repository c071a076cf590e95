//! Just enough of Rust's grammar: comments and strings taken out, tests taken out, words and braces found.

/// The code with every comment, string and character replaced by blanks. Lines stay where they are.
pub fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(text, at);
        for byte in &mut out[at..end.max(at)] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("whole characters were blanked")
}

/// Where the comment, string or character that begins at `at` ends; `at` itself if none begins there.
fn skip(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    let before = if at == 0 {
        b' '
    } else {
        text.as_bytes()[at - 1]
    };
    let in_word = before.is_ascii_alphanumeric() || before == b'_';
    match rest {
        [b'/', b'/', ..] => at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => at + block_comment(rest),
        [b'"', ..] => at + quoted(rest, b'"'),
        [b'r', b'"' | b'#', ..] if !in_word || before == b'b' => at + raw_string(rest),
        [b'\'', ..] => at + character(&text[at..]),
        // The blanked bytes must be whole characters; outside of strings and comments code is ASCII.
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut i) = (0, 0);
    while i < rest.len() {
        match &rest[i..] {
            [b'/', b'*', ..] => (depth, i) = (depth + 1, i + 2),
            [b'*', b'/', ..] if depth == 1 => return i + 2,
            [b'*', b'/', ..] => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut i = 1;
    while i < rest.len() && rest[i] != quote {
        i += if rest[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(rest.len())
}

/// `r"…"` with any number of `#`; nothing if it is a raw identifier.
fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    let body = 2 + hashes;
    let found = rest[body..]
        .windows(close.len())
        .position(|window| window == close);
    found.map_or(rest.len(), |i| body + i + close.len())
}

/// `'x'` and `'\n'`; nothing for a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest[1..].chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => quoted(rest.as_bytes(), b'\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}

/// `code` without the modules and items that only tests are built with. Lines stay where they are.
pub fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = code.to_owned();
    while let Some(start) = out.find(MARK) {
        let end = item_end(&out, start + MARK.len());
        let blank: String = out[start..end]
            .chars()
            .map(|c| if c == '\n' { c } else { ' ' })
            .collect();
        out.replace_range(start..end, &blank);
    }
    out
}

/// The names of the modules in files of their own that only tests are built with.
pub fn test_modules(code: &str) -> Vec<String> {
    let after = |part: &str| {
        Some(
            part.trim_start()
                .strip_prefix("mod ")?
                .split_once(';')?
                .0
                .trim()
                .to_owned(),
        )
    };
    code.split("#[cfg(test)]")
        .skip(1)
        .filter_map(after)
        .filter(|name| is_word(name))
        .collect()
}

/// Where the item that begins at `from` ends: after its block, or after a semicolon before any block.
fn item_end(code: &str, from: usize) -> usize {
    let mut nested = 0usize;
    for (i, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            b';' if nested == 0 => return i + 1,
            b'{' if nested == 0 => return block_end(code, i),
            _ => {}
        }
    }
    code.len()
}

/// After the brace that closes the one at `open`.
fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (i, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return i + 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The words of code, each with where it begins.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| !(c.is_alphanumeric() || c == '_');
    code.split(part)
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - code.as_ptr() as usize, word))
}

/// The line that a place is on, from 1.
pub fn line(text: &str, at: usize) -> usize {
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Every function with a body: its name, its first line and how many lines it has.
pub fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    let mut previous = "";
    for (at, word) in words(code) {
        let named = previous == "fn" && code[..at].trim_end().ends_with("fn");
        if named {
            let end = item_end(code, at);
            if code[..end].ends_with('}') {
                let (first, last) = (line(code, at), line(code, end));
                found.push((word.to_owned(), first, last - first + 1));
            }
        }
        previous = word;
    }
    found
}

#[test]
fn comments_strings_and_characters_are_taken_out() {
    for (text, expected) in [
        ("a // fs\nb", "a      \nb"),
        ("a /* x /* y */ z */ b", "a                   b"),
        (r#"f("fs \" {", '{')"#, "f(         ,    )"),
        (r##"f(r#"a"b"#) g"##, "f(        ) g"),
        (
            "fn f<'a>(x: &'a u8) { '\\'' }",
            "fn f<'a>(x: &'a u8) {      }",
        ),
        ("let é = 'é';", "let é =     ;"),
        ("r#type b\"x\"", "r#type b   "),
    ] {
        assert_eq!(code(text), expected, "{text}");
    }
}

#[test]
fn tests_are_taken_out() {
    let text = "use a;\n#[cfg(test)]\nuse b::{c, d};\n#[cfg(test)]\nmod tests {\n fn x() { y() }\n}\nfn z() {}";
    let left = without_tests(text);
    assert_eq!(left.lines().count(), text.lines().count());
    assert_eq!(
        words(&left).map(|(_, word)| word).collect::<Vec<_>>(),
        ["use", "a", "fn", "z"]
    );
    assert_eq!(
        test_modules("#[cfg(test)]\nmod model;\nmod other;"),
        ["model"]
    );
}

#[test]
fn functions_are_found_with_their_lines() {
    let text = "struct S { f: fn(u8) -> u8 }\ntrait T { fn a(&self); }\nfn b(x: [u8; 2]) -> u8\nwhere\n u8: Copy,\n{\n if x { 1 } else { 2 }\n}";
    assert_eq!(functions(text), [("b".to_owned(), 3, 6)]);
}
