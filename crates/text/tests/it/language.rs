//! The query language: what cannot be read, and where.

use longbow_text::{Query, QueryError};

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    let dangling = |what, at| QueryError::Dangling { what, at };
    let cases = [
        ("", QueryError::Empty),
        (" ?! - + () ", QueryError::Empty),
        ("-cat", QueryError::OnlyExcludes { at: 1 }),
        ("NOT cat", QueryError::OnlyExcludes { at: 1 }),
        ("dog (-cat -cow)", QueryError::OnlyExcludes { at: 6 }),
        ("dog AND (NOT cat)", QueryError::OnlyExcludes { at: 10 }),
        ("a \"b c", QueryError::Unpaired { what: '"', at: 3 }),
        ("a (b c", QueryError::Unpaired { what: '(', at: 3 }),
        ("ä b) c", QueryError::Unpaired { what: ')', at: 4 }),
        ("OR a", dangling("OR", 1)),
        ("a OR", dangling("OR", 3)),
        ("a OR OR b", dangling("OR", 6)),
        ("AND a", dangling("AND", 1)),
        ("a AND", dangling("AND", 3)),
        ("a AND OR b", dangling("AND", 3)),
        ("(a AND ) b", dangling("AND", 4)),
        ("a NOT", dangling("NOT", 3)),
        ("cat~3", QueryError::BadDistance { at: 1 }),
        ("a cat~12", QueryError::BadDistance { at: 3 }),
    ];
    for (text, expected) in cases {
        assert_eq!(Query::parse(text), Err(expected), "{text}");
    }
    let deep = format!("{}a{}", "(".repeat(33), ")".repeat(33));
    assert_eq!(
        Query::parse(&deep),
        Err(QueryError::TooDeep { at: 33, limit: 32 })
    );
    assert_eq!(
        Query::parse(&"a ".repeat(513)),
        Err(QueryError::TooLong { limit: 512 })
    );
    assert!(Query::parse(&"a ".repeat(512)).is_ok());
    assert_eq!(
        Query::parse(&"( ) ".repeat(513)),
        Err(QueryError::TooLong { limit: 512 })
    );
}

#[test]
fn different_ways_to_say_the_same() {
    let same = [
        ("a b", "a OR b"),
        ("a b", " a - + b ?! () "),
        ("+a +b", "a AND b"),
        ("+a -b", "a AND NOT b"),
        ("+a -b", "a AND -b"),
        ("a OR b AND c", "a OR (b AND c)"),
        ("(a)", "a"),
        ("NOT NOT a", "a"),
        ("NOT -a", "a"),
        ("a~", "a~1"),
        ("a -(b c)", "a NOT (b OR c)"),
        ("a\"b c\"d", "a \"b c\" d"),
    ];
    for (one, other) in same {
        assert_eq!(Query::parse(one), Query::parse(other), "{one}");
    }
    let different = [
        ("a AND b", "a and b"),
        ("foo-bar", "foo -bar"),
        ("\"a b\"", "a b"),
        ("a*", "a"),
        ("a~1", "a~2"),
    ];
    for (one, other) in different {
        assert_ne!(Query::parse(one), Query::parse(other), "{one}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_strange(text in "[ ab\"()+*~12äAND ORT-]{0,60}") {
        let _ = Query::parse(&text);
    }
}
