//! The parser of that name against whatever libFuzzer makes.
#![no_main]
libfuzzer_sys::fuzz_target!(|text: &str| gridwright_tests::fuzz::rqs(text));
