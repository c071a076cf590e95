//! From text to tokens.

use tantivy::tokenizer::{Language, LowerCaser, SimpleTokenizer, Stemmer, TextAnalyzer};

/// Longest token, in bytes; of a longer one only the beginning counts.
const MAX_TOKEN: usize = 255;
/// Characters of an n-gram.
const GRAM: usize = 3;

/// The languages whose words can be reduced to their stems, by ISO 639-1 code.
const LANGUAGES: [(&str, Language); 18] = [
    ("ar", Language::Arabic),
    ("da", Language::Danish),
    ("de", Language::German),
    ("el", Language::Greek),
    ("en", Language::English),
    ("es", Language::Spanish),
    ("fi", Language::Finnish),
    ("fr", Language::French),
    ("hu", Language::Hungarian),
    ("it", Language::Italian),
    ("nl", Language::Dutch),
    ("no", Language::Norwegian),
    ("pt", Language::Portuguese),
    ("ro", Language::Romanian),
    ("ru", Language::Russian),
    ("sv", Language::Swedish),
    ("ta", Language::Tamil),
    ("tr", Language::Turkish),
];

/// How the text of a column is cut into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokenizer {
    /// Runs of letters and digits, in lower case.
    Words,
    /// The same, reduced to their stems by the Snowball algorithm of a language.
    Stems(Language),
    /// Of each run of letters and digits, in lower case, all pieces of three characters; of a shorter run itself. A word
    /// of a query is found within others.
    Ngrams,
}

impl Tokenizer {
    /// A tokenizer by its name: `default`, `ngram`, or the code of a language.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Tokenizer::Words),
            "ngram" => Some(Tokenizer::Ngrams),
            code => LANGUAGES
                .iter()
                .find(|(known, _)| *known == code)
                .map(|(_, language)| Tokenizer::Stems(*language)),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Tokenizer::Words => "default",
            Tokenizer::Ngrams => "ngram",
            Tokenizer::Stems(language) => LANGUAGES
                .iter()
                .find(|(_, known)| *known == language)
                .map_or("default", |(code, _)| code),
        }
    }
}

/// Cuts texts into tokens, one after the other.
pub(crate) struct Analyzer {
    words: TextAnalyzer,
    ngrams: bool,
}

impl Analyzer {
    pub fn new(tokenizer: Tokenizer) -> Self {
        let words = TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser);
        let words = match tokenizer {
            Tokenizer::Stems(language) => words.filter(Stemmer::new(language)).build(),
            Tokenizer::Words | Tokenizer::Ngrams => words.build(),
        };
        Analyzer {
            words,
            ngrams: tokenizer == Tokenizer::Ngrams,
        }
    }

    /// Hands on each token with its position, and answers how many there are. Positions grow by one; between the n-grams
    /// of one word and of the next there is a gap.
    pub fn each(&mut self, text: &str, take: &mut dyn FnMut(&str, u32)) -> u32 {
        let (mut count, mut position) = (0, 0);
        let ngrams = self.ngrams;
        self.words.token_stream(text).process(&mut |token| {
            let mut take_next = |piece: &str| {
                take(cut(piece), position);
                count += 1;
                position += 1;
            };
            if ngrams {
                grams(&token.text, &mut take_next);
                position += 1;
            } else {
                take_next(&token.text);
            }
        });
        count
    }

    /// The tokens of a text, and their positions.
    pub fn all(&mut self, text: &str) -> Vec<(String, u32)> {
        let mut tokens = Vec::new();
        self.each(text, &mut |token, position| {
            tokens.push((token.to_owned(), position));
        });
        tokens
    }
}

/// All pieces of [`GRAM`] characters, or the whole of a shorter word.
fn grams(word: &str, take: &mut dyn FnMut(&str)) {
    let ends: Vec<usize> = word
        .char_indices()
        .map(|(at, _)| at)
        .chain([word.len()])
        .collect();
    if ends.len() <= GRAM + 1 {
        return take(word);
    }
    for piece in ends.windows(GRAM + 1) {
        take(&word[piece[0]..piece[GRAM]]);
    }
}

fn cut(token: &str) -> &str {
    &token[..token.floor_char_boundary(MAX_TOKEN)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(name: &str, text: &str) -> Vec<(String, u32)> {
        Analyzer::new(Tokenizer::of_name(name).expect("a tokenizer")).all(text)
    }

    fn words(name: &str, text: &str) -> Vec<String> {
        let tokens = tokens(name, text).into_iter();
        tokens.map(|(token, _)| token).collect()
    }

    #[test]
    fn names_lead_there_and_back() {
        for name in ["default", "ngram", "en", "de", "tr"] {
            assert_eq!(Tokenizer::of_name(name).map(Tokenizer::name), Some(name));
        }
        assert!(["", "none", "EN", "xx"].map(Tokenizer::of_name) == [None; 4]);
    }

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        let text = "The Quick-brown ΦΟΞ's 2nd—jump";
        assert_eq!(
            words("default", text),
            ["the", "quick", "brown", "φοξ", "s", "2nd", "jump"]
        );
        assert_eq!(words("en", "running Houses"), ["run", "hous"]);
        assert!(words("default", " —!? ").is_empty());
    }

    #[test]
    fn ngrams_have_a_gap_between_words() {
        let expected = [("grö", 0), ("röß", 1), ("ßen", 3), ("ab", 5)];
        let found = tokens("ngram", "Größ ßen ab");
        let found: Vec<(&str, u32)> = found.iter().map(|(t, p)| (t.as_str(), *p)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn of_a_long_word_the_beginning_counts() {
        let long = "ß".repeat(200);
        assert_eq!(words("default", &long), ["ß".repeat(127)]);
    }
}
