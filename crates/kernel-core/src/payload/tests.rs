use super::*;
use serde_json::json;

#[track_caller]
fn refused(text: &str, pointer: &str, rule: Rule) {
    let error = Payload::parse(text).unwrap_err();
    assert_eq!(error, PayloadError { pointer: pointer.to_owned(), rule }, "{text}");
}

#[track_caller]
fn not_json(text: &str, pointer: &str) {
    let error = Payload::parse(text).unwrap_err();
    assert!(matches!(error.rule, Rule::NotJson { .. }), "{text}: {error}");
    assert_eq!(error.pointer, pointer, "{text}");
}

/// The value of a text, written by our canonical encoding, which tells types of numbers apart.
#[track_caller]
fn kept(text: &str, canonical: &str) {
    let payload = Payload::parse(text).unwrap();
    assert_eq!(payload.text(), text);
    assert_eq!(crate::canonical::canonical(payload.value()), canonical, "{text}");
    assert_eq!(Payload::from_bytes(text.as_bytes()).unwrap(), payload);
    let again = Payload::from_value(payload.value()).unwrap();
    assert_eq!(again.value(), payload.value());
    assert_eq!(Payload::parse(again.text()).unwrap(), again);
}

#[test]
fn the_json_library_keeps_neither_the_order_of_keys_nor_the_digits_of_numbers() {
    let value: Value = serde_json::from_str(r#"{"b":1,"a":2}"#).unwrap();
    assert_eq!(value.to_string(), r#"{"a":2,"b":1}"#, "feature preserve_order is on");
    let value: Value = serde_json::from_str("1.10").unwrap();
    assert_eq!(value.to_string(), "1.1", "feature arbitrary_precision is on");
}

/// Covers field fault 99. Covers field fault 101.
#[test]
fn text_stays_byte_for_byte_and_values_keep_value_and_type() {
    for (text, canonical) in [
        ("null", "null"),
        (" { \"b\" : [ ] ,\r\n\t\"a\" : { } } ", r#"{"a":{},"b":[]}"#),
        ("3544790567247868102", "3544790567247868102"),
        ("[9007199254740993,9007199254740993.0]", "[9007199254740993,9007199254740992.0]"),
        (
            "[9223372036854775807,-9223372036854775808]",
            "[9223372036854775807,-9223372036854775808]",
        ),
        ("18446744073709551615", "18446744073709551615"),
        ("[1,1.0,1e0,10E-1,0.1e+1]", "[1,1.0,1.0,1.0,1.0]"),
        ("[0,-0,-0.0,0e5]", "[0,0,0.0,0.0]"),
        ("0.30000000000000004", "0.30000000000000004"),
        // The JSON library alone is off in the last digit of these, unless its float_roundtrip is on.
        ("8.383658838626809e-78", "8.383658838626809e-78"),
        ("-7.803913958627244e173", "-7.803913958627244e173"),
        ("1.631150825949372e308", "1.631150825949372e308"),
        ("1.0000000000000002", "1.0000000000000002"),
        ("[5e-324,2.2250738585072014e-308,1e-400]", "[5e-324,2.2250738585072014e-308,0.0]"),
        ("[1.7976931348623157e308,1e308]", "[1.7976931348623157e308,1e308]"),
        (r#""\ud83d\ude00""#, "\"😀\""),
        (
            r#"["\u0000","\uffff","\u2028","é","e\u0301"]"#,
            "[\"\\u0000\",\"\u{ffff}\",\"\u{2028}\",\"é\",\"e\u{301}\"]",
        ),
        (r#"["12","\\",1,"\"-3",{"4":"5\\"},6]"#, r#"["12","\\",1,"\"-3",{"4":"5\\"},6]"#),
        (r#"{"":1,"é":2,"e\u0301":3}"#, "{\"\":1,\"e\u{301}\":3,\"é\":2}"),
    ] {
        kept(text, canonical);
    }
}

#[test]
fn numbers_that_would_lose_something_are_refused() {
    for integer in [
        "18446744073709551616",
        "-9223372036854775809",
        "100000000000000000000000000000",
        &"9".repeat(500),
        &format!("-{}", "9".repeat(500)),
    ] {
        refused(integer, "", Rule::IntegerRange);
        refused(&format!(r#"{{"a":[1.5,"2",{integer}]}}"#), "/a/2", Rule::IntegerRange);
    }
    for number in ["1e400", "-1e400", "1.8e308", "1e999999999999999999999", "0.1e310"] {
        refused(number, "", Rule::NumberRange);
        refused(&format!(r#"[{{"é":{number}}}]"#), "/0/é", Rule::NumberRange);
    }
}

#[test]
fn a_key_stands_once_in_its_object() {
    refused(r#"{"a":1,"a":1}"#, "/a", Rule::DuplicateKey);
    refused(r#"{"a":1,"\u0061":2}"#, "/a", Rule::DuplicateKey);
    refused(r#"[0,{"x/y":{"~":1,"b":2,"~":3}}]"#, "/1/x~1y/~0", Rule::DuplicateKey);
    refused(r#"{"":1,"":2}"#, "/", Rule::DuplicateKey);
    kept(r#"[{"a":{"a":1}},{"a":1}]"#, r#"[{"a":{"a":1}},{"a":1}]"#);
}

/// Covers field fault 96.
#[test]
fn half_a_surrogate_pair_is_refused() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\ud800""#,
        r#""\ud83d\u0041""#,
        r#""\ude00\ud83d""#,
    ] {
        refused(text, "", Rule::LoneSurrogate);
        refused(&format!(r#"{{"a":["",{text}]}}"#), "/a/1", Rule::LoneSurrogate);
    }
    refused(r#"{"a":{"\ud800":1}}"#, "/a", Rule::LoneSurrogate);
}

#[test]
fn bytes_must_be_utf_8() {
    for (bytes, pointer) in [
        (&b"\"\xff\""[..], ""),
        (b"{\"a\":[1,\"x\xc3\x28\"]}", "/a/1"),
        (b"[\"\xed\xa0\x80\"]", "/0"),
        (b"{\"\xff\":1}", ""),
        (b"1\xff", ""),
        (b"\xff", ""),
    ] {
        let error = Payload::from_bytes(bytes).unwrap_err();
        assert_eq!((error.pointer.as_str(), error.rule), (pointer, Rule::InvalidUtf8));
    }
    let earlier = Payload::from_bytes(b"{\"a\":1,\"a\":\"\xff\"}").unwrap_err();
    assert_eq!(earlier.rule, Rule::DuplicateKey);
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    kept(&nested(127), &nested(127));
    refused(&nested(128), &"/0".repeat(127), Rule::TooDeep);
    refused(&"[".repeat(100_000), &"/0".repeat(127), Rule::TooDeep);
    refused(&r#"{"a":"#.repeat(100_000), &"/a".repeat(127), Rule::TooDeep);

    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    assert_eq!(Payload::from_value(&deep(127)).unwrap().value(), &deep(127));
    let error = Payload::from_value(&deep(128)).unwrap_err();
    assert_eq!(error, PayloadError { pointer: "/a".repeat(127), rule: Rule::TooDeep });
    let error = Payload::from_value(&json!([1, { "x/y": deep(128) }])).unwrap_err();
    assert!(error.pointer.starts_with("/1/x~1y/a/a"), "{error}");
}

#[test]
fn what_is_not_json_is_refused_at_its_place() {
    for (text, pointer) in [
        ("", ""),
        ("nul", ""),
        ("1 2", ""),
        ("[1,]", "/1"),
        ("{\"a\":}", "/a"),
        ("{\"a\":[1,tru]}", "/a/1"),
        ("{a:1}", ""),
        ("{\"a\" 1}", "/a"),
        ("'a'", ""),
        ("01", ""),
        ("+1", ""),
        ("[1.]", "/0"),
        ("[.5]", "/0"),
        ("[1e]", "/0"),
        ("[-]", "/0"),
        ("NaN", ""),
        ("[Infinity]", "/0"),
        ("\"\n\"", ""),
        ("\"a", ""),
        ("\"\\u12\"", ""),
        ("\"\\x\"", ""),
        ("\u{feff}1", ""),
        ("// 1", ""),
    ] {
        not_json(text, pointer);
    }
}

/// Covers field fault 97.
#[test]
fn a_refusal_is_a_sentence_with_the_place() {
    let error = Payload::parse(r#"{"lines":[{"id":18446744073709551616}]}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the payload cannot be kept exactly: at `/lines/0/id`, the integer is outside of 64 bits and would lose \
         digits; keep it as a text"
    );
    let error = Payload::parse("{").unwrap_err().to_string();
    assert!(error.contains("it is not JSON: EOF") && error.contains("column 1"), "{error}");
}

/// Covers field fault 95. Covers field fault 98.
#[test]
fn any_message_can_be_stored() {
    for (text, stored) in [
        ("", ""),
        ("plain ü 😀\n\u{1}\u{7f}\u{2028}", "plain ü 😀\n\u{1}\u{7f}\u{2028}"),
        ("\0a\0\0", r"\u0000a\u0000\u0000"),
        (r"\u0000", r"\u0000"),
    ] {
        assert_eq!(text_for_storage(text), stored);
    }
    let full = "x".repeat(STORED_TEXT_MAX_BYTES);
    assert_eq!(text_for_storage(&full), full);
    for unit in ["x", "é", "€", "😀", "\0", "ab\0", "😀x"] {
        let stored = text_for_storage(&unit.repeat(10 * 1024 * 1024 / unit.len()));
        assert!(stored.len() <= STORED_TEXT_MAX_BYTES, "{unit:?}");
        assert!(stored.len() > STORED_TEXT_MAX_BYTES - 10, "{unit:?}");
        let body = stored.strip_suffix('…').unwrap();
        let escaped = unit.replace('\0', "\\u0000");
        assert!(escaped.repeat(STORED_TEXT_MAX_BYTES).starts_with(body), "{unit:?}");
        assert!(!body.ends_with("\\u000") && !body.ends_with('\\'), "{unit:?}");
        assert_eq!(text_for_storage(&stored), stored);
    }
}

#[test]
fn what_the_kernel_stores_around_a_payload_of_full_depth_is_read_back() {
    let lists = PAYLOAD_MAX_DEPTH - 1;
    let deep = format!("{}\"[[\\\"{{{{\"{}", "[".repeat(lists), "]".repeat(lists));
    let output = Payload::parse(&deep).unwrap().into_value();
    let step = crate::StepKey::from("steps.0");
    let fact = crate::Fact::StepCompleted { step, output, by: crate::SaidBy::Action };
    let text = serde_json::to_string(&[&fact]).unwrap();
    assert!(
        serde_json::from_str::<Vec<crate::Fact>>(&text).is_err(),
        "the helper has no use any more"
    );
    assert_eq!(from_stored::<Vec<crate::Fact>>(&text).unwrap(), [fact]);

    for text in ["[".repeat(1_000_000), format!("{}1", "[".repeat(513)), "[1] 2".to_owned()] {
        assert!(from_stored::<Value>(&text).is_err());
    }
}

/// Whoever reads such an object with `serde_json` gets what stands for it: another value, which nobody has checked.
#[test]
fn a_key_that_stands_for_another_value_is_refused_wherever_it_is() {
    let raw = r#"{"lines":[{"a":1,"$serde_json::private::RawValue":"{\"secret\":\"KEY\"}"}]}"#;
    let pointer = "/lines/0/$serde_json::private::RawValue";
    refused(raw, pointer, Rule::ReservedKey);
    refused(
        r#"{"$serde_json::private::Number":"1"}"#,
        "/$serde_json::private::Number",
        Rule::ReservedKey,
    );
    let value = json!({ "lines": [{ "a": 1, "$serde_json::private::RawValue": "[1]" }] });
    let expected = PayloadError { pointer: pointer.to_owned(), rule: Rule::ReservedKey };
    assert_eq!(Payload::from_value(&value).unwrap_err(), expected);
    // As a text it is one like any other.
    assert!(Payload::parse(r#"["$serde_json::private::RawValue"]"#).is_ok());
}
