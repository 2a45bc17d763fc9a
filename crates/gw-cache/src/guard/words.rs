//! The words that carry a difference: negations, opposites, numbers, dates and units, formats and languages.
//!
//! A word too many costs a hit, a word too few may give a wrong answer. The lists are English, with the commonest
//! negations of other languages. All of them are in lower case and sorted by bytes, for binary search.

/// Words with an opposite, as (word, scale, end of the scale): two questions that name different ends of one scale ask
/// different things. A word may stand on several scales.
#[rustfmt::skip] // One word a line would be a list of many pages.
pub(super) const OPPOSITES: &[(&str, u8, u8)] = &[
    ("above", 27, 1), ("abroad", 65, 2), ("absolute", 101, 1), ("accept", 4, 1), ("accepted", 4, 1),
    ("activate", 5, 1), ("activated", 5, 1), ("add", 7, 1), ("added", 7, 1), ("adding", 7, 1),
    ("adult", 80, 1), ("adults", 80, 1), ("advantage", 14, 1), ("after", 26, 2), ("afternoon", 87, 2),
    ("agree", 106, 1), ("all", 30, 1), ("allow", 3, 1), ("allowed", 3, 1), ("allowing", 3, 1),
    ("always", 30, 1), ("am", 88, 1), ("amex", 111, 3), ("android", 112, 2), ("annual", 85, 6),
    ("annually", 85, 6), ("any", 30, 2), ("approve", 4, 1), ("approved", 4, 1), ("arrival", 64, 1),
    ("arrive", 64, 1), ("arriving", 64, 1), ("ascending", 63, 1), ("async", 100, 1),
    ("asynchronous", 100, 1), ("attach", 55, 1), ("attached", 55, 1), ("autumn", 90, 3), ("avoid", 105, 2),
    ("back", 61, 2), ("backward", 58, 2), ("backwards", 58, 2), ("bad", 14, 2), ("ban", 3, 2),
    ("banned", 3, 2), ("before", 26, 1), ("began", 9, 1), ("begin", 9, 1), ("below", 27, 2),
    ("benefit", 14, 1), ("best", 14, 1), ("better", 14, 1), ("big", 22, 1), ("bigger", 22, 1),
    ("biggest", 22, 1), ("billing", 117, 1), ("block", 20, 1), ("blocked", 20, 1), ("borrow", 37, 2),
    ("borrowed", 37, 2), ("borrower", 74, 2), ("bottom", 60, 2), ("bought", 34, 1), ("boy", 79, 1),
    ("boys", 79, 1), ("breakfast", 114, 1), ("bright", 97, 2), ("building", 98, 9), ("buildings", 98, 9),
    ("business", 98, 2), ("business", 115, 2), ("busy", 93, 1), ("buy", 34, 1), ("buyer", 76, 1),
    ("buying", 34, 1), ("cabin", 116, 1), ("cancel", 9, 2), ("canceled", 9, 2), ("canceled", 119, 4),
    ("cancelled", 9, 2), ("cancelled", 119, 4), ("car", 98, 3), ("carry-on", 116, 1), ("cash", 118, 3),
    ("cheap", 32, 1), ("cheaper", 32, 1), ("cheapest", 32, 1), ("checked", 116, 2), ("child", 80, 2),
    ("children", 80, 2), ("childrens", 80, 2), ("chill", 21, 2), ("client", 103, 1), ("close", 2, 2),
    ("closed", 2, 2), ("closing", 2, 2), ("cold", 21, 2), ("commercial", 98, 2), ("compress", 52, 1),
    ("compressed", 52, 1), ("compulsory", 68, 1), ("con", 14, 2), ("connect", 56, 1), ("connected", 56, 1),
    ("constant", 71, 1), ("contents", 98, 8), ("continue", 9, 1), ("cool", 21, 2), ("cooling", 21, 2),
    ("corporate", 98, 2), ("correct", 41, 1), ("create", 8, 1), ("created", 8, 1), ("creating", 8, 1),
    ("credit", 38, 1), ("current", 91, 1), ("currently", 91, 1), ("cut", 10, 2), ("dad", 81, 2),
    ("daily", 85, 1), ("dangerous", 67, 2), ("dark", 97, 1), ("daughter", 83, 2), ("day-to-day", 85, 1),
    ("deactivate", 5, 2), ("deactivated", 5, 2), ("dearer", 32, 2), ("dearest", 32, 2), ("debit", 38, 2),
    ("decline", 3, 2), ("decline", 4, 2), ("declined", 3, 2), ("declined", 4, 2), ("declined", 119, 2),
    ("decode", 51, 2), ("decoded", 51, 2), ("decompress", 52, 2), ("decrease", 10, 2), ("decreased", 10, 2),
    ("decrypt", 50, 2), ("decrypted", 50, 2), ("delete", 7, 2), ("delete", 8, 2), ("deleted", 7, 2),
    ("deleted", 8, 2), ("deleting", 7, 2), ("deleting", 8, 2), ("delivery", 117, 2), ("denied", 3, 2),
    ("denied", 4, 2), ("deny", 3, 2), ("deny", 4, 2), ("depart", 64, 2), ("departing", 64, 2),
    ("departure", 64, 2), ("deposit", 36, 1), ("deposited", 36, 1), ("descending", 63, 2),
    ("destroy", 8, 2), ("destroyed", 8, 2), ("detach", 55, 2), ("detached", 55, 2), ("difficult", 95, 1),
    ("digital", 110, 2), ("dinner", 114, 3), ("disable", 5, 2), ("disabled", 5, 2), ("disabling", 5, 2),
    ("disadvantage", 14, 2), ("disagree", 106, 2), ("disallow", 3, 2), ("disallowed", 3, 2),
    ("disconnect", 56, 2), ("disconnected", 56, 2), ("discourage", 105, 2), ("dislike", 107, 2),
    ("doctor", 78, 1), ("domestic", 65, 1), ("domestic", 98, 1), ("double", 70, 2), ("down", 10, 2),
    ("downgrade", 15, 2), ("downgraded", 15, 2), ("download", 16, 2), ("downloaded", 16, 2),
    ("downside", 14, 2), ("draw", 108, 2), ("drawback", 14, 2), ("dry", 94, 2), ("dynamic", 71, 2),
    ("each", 30, 1), ("earlier", 25, 1), ("earliest", 25, 1), ("early", 25, 1), ("easy", 95, 2),
    ("economy", 115, 1), ("elaborate", 109, 2), ("employed", 72, 1), ("employee", 72, 1),
    ("employee", 75, 2), ("employees", 72, 1), ("employer", 75, 1), ("empty", 69, 2), ("enable", 5, 1),
    ("enabled", 5, 1), ("enabling", 5, 1), ("encode", 51, 1), ("encoded", 51, 1), ("encourage", 105, 1),
    ("encrypt", 50, 1), ("encrypted", 50, 1), ("end", 9, 2), ("ended", 9, 2), ("evening", 87, 3),
    ("every", 30, 1), ("exchange", 118, 4), ("exchanged", 118, 4), ("exchanging", 118, 4),
    ("exclude", 6, 2), ("excluded", 6, 2), ("excluding", 6, 2), ("exclusive", 6, 2), ("expand", 109, 2),
    ("expensive", 32, 2), ("export", 17, 2), ("exported", 17, 2), ("external", 46, 2), ("extract", 52, 2),
    ("extracted", 52, 2), ("fail", 43, 2), ("failed", 43, 2), ("failed", 119, 2), ("failing", 43, 2),
    ("failure", 43, 2), ("false", 41, 2), ("fast", 24, 1), ("faster", 24, 1), ("fastest", 24, 1),
    ("father", 81, 2), ("female", 79, 2), ("few", 31, 2), ("fewer", 10, 2), ("final", 28, 2),
    ("find", 120, 3), ("finish", 9, 2), ("first", 28, 1), ("first", 115, 3), ("fixed", 71, 1),
    ("floating", 71, 2), ("following", 26, 2), ("forbid", 3, 2), ("forbidden", 3, 2), ("foreign", 65, 2),
    ("former", 91, 2), ("forward", 58, 1), ("found", 120, 3), ("free", 33, 1), ("freeze", 20, 1),
    ("freezing", 21, 2), ("front", 61, 1), ("full", 69, 1), ("future", 91, 3), ("gain", 40, 1),
    ("get", 35, 2), ("girl", 79, 2), ("girls", 79, 2), ("good", 14, 1), ("gross", 39, 1), ("grow", 10, 1),
    ("half", 69, 3), ("hand", 116, 1), ("hard", 95, 1), ("hate", 107, 2), ("health", 98, 7),
    ("heat", 21, 1), ("heating", 21, 1), ("heavy", 96, 1), ("hidden", 44, 2), ("hidden", 45, 2),
    ("hide", 44, 2), ("hide", 45, 2), ("high", 11, 1), ("higher", 10, 1), ("highest", 11, 1),
    ("hold", 116, 2), ("home", 98, 1), ("homeowner", 74, 1), ("horizontal", 62, 1), ("hot", 21, 1),
    ("hot", 92, 4), ("hourly", 85, 2), ("household", 98, 1), ("husband", 82, 2), ("illegal", 66, 2),
    ("import", 17, 1), ("imported", 17, 1), ("in", 47, 1), ("include", 6, 1), ("included", 6, 1),
    ("including", 6, 1), ("inclusive", 6, 1), ("incorrect", 41, 2), ("increase", 10, 1),
    ("increased", 10, 1), ("individual", 70, 1), ("input", 48, 1), ("inside", 46, 1), ("install", 18, 1),
    ("installed", 18, 1), ("internal", 46, 1), ("international", 65, 2), ("into", 47, 1),
    ("invisible", 45, 2), ("ios", 112, 1), ("iphone", 112, 1), ("join", 54, 1), ("joined", 54, 1),
    ("joint", 70, 2), ("kid", 80, 2), ("kids", 80, 2), ("landlord", 74, 1), ("large", 22, 1),
    ("larger", 22, 1), ("largest", 22, 1), ("last", 28, 2), ("late", 25, 2), ("later", 25, 2),
    ("latest", 25, 2), ("lawful", 66, 1), ("least", 12, 2), ("leave", 54, 2), ("leaving", 54, 2),
    ("left", 54, 2), ("left", 59, 1), ("legal", 66, 1), ("lend", 37, 1), ("lender", 74, 1),
    ("lengthen", 109, 2), ("lent", 37, 1), ("less", 12, 2), ("life", 98, 6), ("light", 96, 2),
    ("light", 97, 2), ("like", 107, 1), ("linux", 113, 2), ("little", 22, 2), ("little", 31, 2),
    ("local", 102, 1), ("lock", 19, 1), ("locked", 19, 1), ("login", 57, 1), ("logout", 57, 2),
    ("long", 23, 1), ("longer", 23, 1), ("longest", 23, 1), ("lose", 40, 2), ("lose", 120, 1),
    ("loss", 40, 2), ("lost", 40, 2), ("lost", 120, 1), ("loud", 93, 1), ("love", 107, 1), ("low", 11, 2),
    ("lower", 10, 2), ("lowered", 10, 2), ("lowest", 11, 2), ("lunch", 114, 2), ("mac", 113, 3),
    ("macos", 113, 3), ("make", 8, 1), ("male", 79, 1), ("man", 79, 1), ("mandatory", 68, 1),
    ("mandatory", 99, 1), ("many", 31, 1), ("mastercard", 111, 2), ("max", 13, 1), ("maximum", 13, 1),
    ("medical", 98, 7), ("men", 79, 1), ("mens", 79, 1), ("midday", 87, 5), ("midnight", 87, 6),
    ("mild", 92, 5), ("min", 13, 2), ("minimum", 13, 2), ("mom", 81, 1), ("monthly", 85, 4),
    ("more", 12, 1), ("morning", 87, 1), ("most", 12, 1), ("most", 30, 3), ("mother", 81, 1),
    ("motor", 98, 3), ("much", 31, 1), ("multi", 70, 2), ("mum", 81, 1), ("myself", 84, 1),
    ("national", 65, 1), ("net", 39, 2), ("never", 30, 4), ("new", 29, 2), ("newer", 29, 2),
    ("newest", 29, 2), ("next", 28, 3), ("night", 87, 4), ("no", 42, 2), ("noisy", 93, 1), ("none", 30, 4),
    ("noon", 87, 5), ("now", 91, 1), ("obligatory", 68, 1), ("off", 1, 2), ("office", 98, 2),
    ("old", 29, 1), ("older", 29, 1), ("oldest", 29, 1), ("on", 1, 1), ("open", 2, 1), ("opened", 2, 1),
    ("opening", 2, 1), ("optional", 68, 2), ("out", 47, 2), ("output", 48, 2), ("outside", 46, 2),
    ("over", 27, 1), ("overseas", 65, 2), ("owner", 74, 1), ("paid", 33, 2), ("part", 69, 3),
    ("partial", 69, 3), ("pass", 43, 1), ("passed", 43, 1), ("past", 91, 2), ("patient", 78, 2),
    ("pause", 9, 2), ("paused", 9, 2), ("pending", 119, 1), ("permanent", 73, 1), ("permanently", 73, 1),
    ("permit", 3, 1), ("permitted", 3, 1), ("personal", 98, 1), ("pet", 98, 5), ("physical", 110, 1),
    ("plastic", 110, 1), ("pm", 88, 2), ("post", 26, 2), ("pre", 26, 1), ("prevent", 105, 2),
    ("previous", 28, 4), ("prior", 26, 1), ("private", 44, 2), ("pro", 14, 1), ("profit", 40, 1),
    ("prohibit", 3, 2), ("prohibited", 3, 2), ("public", 44, 1), ("pull", 53, 2), ("purchase", 34, 1),
    ("push", 53, 1), ("quarterly", 85, 5), ("quick", 24, 1), ("quickly", 24, 1), ("quiet", 93, 2),
    ("quit", 9, 2), ("raise", 10, 1), ("raised", 10, 1), ("read", 104, 1), ("rear", 61, 2),
    ("receive", 35, 2), ("received", 35, 2), ("receiving", 35, 2), ("recommended", 99, 2),
    ("reduce", 10, 2), ("reduced", 10, 2), ("refuse", 3, 2), ("refuse", 4, 2), ("refused", 3, 2),
    ("refused", 4, 2), ("reject", 3, 2), ("reject", 4, 2), ("rejected", 3, 2), ("rejected", 4, 2),
    ("relative", 101, 2), ("remote", 102, 2), ("remove", 7, 2), ("removed", 7, 2), ("removing", 7, 2),
    ("renter", 74, 2), ("request", 49, 1), ("required", 68, 1), ("residential", 98, 1), ("response", 49, 2),
    ("resume", 9, 1), ("resumed", 9, 1), ("reversed", 119, 3), ("reverted", 119, 3), ("right", 41, 1),
    ("right", 59, 2), ("rise", 10, 1), ("risky", 67, 2), ("safe", 67, 1), ("safely", 67, 1),
    ("salty", 92, 3), ("selfemployed", 72, 3), ("sell", 34, 2), ("seller", 76, 2), ("selling", 34, 2),
    ("send", 35, 1), ("sending", 35, 1), ("sent", 35, 1), ("server", 103, 2), ("shared", 70, 2),
    ("shipping", 117, 2), ("short", 23, 2), ("shorten", 109, 1), ("shorter", 23, 2), ("shortest", 23, 2),
    ("show", 45, 1), ("shown", 45, 1), ("shut", 2, 2), ("signin", 57, 1), ("signout", 57, 2),
    ("silent", 93, 2), ("single", 70, 1), ("slow", 24, 2), ("slower", 24, 2), ("slowest", 24, 2),
    ("slowly", 24, 2), ("small", 22, 2), ("smaller", 10, 2), ("smaller", 22, 2), ("smallest", 22, 2),
    ("soft", 95, 2), ("sold", 34, 2), ("sole", 70, 1), ("some", 30, 2), ("sometimes", 30, 2),
    ("son", 83, 1), ("sour", 92, 2), ("spicy", 92, 4), ("spring", 90, 1), ("start", 9, 1),
    ("started", 9, 1), ("starting", 9, 1), ("static", 71, 1), ("steal", 120, 2), ("stolen", 120, 2),
    ("stop", 9, 2), ("stopped", 9, 2), ("stopping", 9, 2), ("student", 77, 2), ("succeed", 43, 1),
    ("succeeded", 43, 1), ("success", 43, 1), ("successful", 43, 1), ("summarize", 109, 1),
    ("summary", 109, 1), ("summer", 90, 2), ("sweet", 92, 1), ("sync", 100, 2), ("synchronous", 100, 2),
    ("teacher", 77, 1), ("temporarily", 73, 2), ("temporary", 73, 2), ("tenant", 74, 2), ("today", 86, 1),
    ("tomorrow", 86, 2), ("tonight", 86, 4), ("top", 60, 1), ("top-up", 118, 1), ("topping", 118, 1),
    ("topup", 118, 1), ("transfer", 118, 2), ("transferred", 118, 2), ("transfers", 118, 2),
    ("travel", 98, 4), ("true", 41, 1), ("unblock", 20, 2), ("unblocked", 20, 2), ("under", 27, 2),
    ("unemployed", 72, 2), ("unfreeze", 20, 2), ("uninstall", 18, 2), ("uninstalled", 18, 2),
    ("unlawful", 66, 2), ("unlock", 19, 2), ("unlocked", 19, 2), ("unsafe", 67, 2), ("unsuccessful", 43, 2),
    ("unzip", 52, 2), ("up", 10, 1), ("upgrade", 15, 1), ("upgraded", 15, 1), ("upload", 16, 1),
    ("uploaded", 16, 1), ("upside", 14, 1), ("variable", 71, 2), ("vehicle", 98, 3), ("vertical", 62, 2),
    ("virtual", 110, 2), ("visa", 111, 1), ("visible", 45, 1), ("voluntary", 68, 2), ("warm", 21, 1),
    ("weekday", 89, 1), ("weekdays", 89, 1), ("weekend", 89, 2), ("weekends", 89, 2), ("weekly", 85, 3),
    ("wet", 94, 1), ("wife", 82, 1), ("win", 40, 1), ("win", 108, 1), ("windows", 113, 1),
    ("winter", 90, 4), ("withdraw", 36, 2), ("withdraw", 118, 3), ("withdrawal", 36, 2),
    ("withdrawal", 118, 3), ("withdrawals", 118, 3), ("withdrew", 36, 2), ("woman", 79, 2),
    ("women", 79, 2), ("womens", 79, 2), ("won", 40, 1), ("work", 98, 2), ("worse", 14, 2),
    ("worst", 14, 2), ("write", 104, 2), ("wrong", 41, 2), ("yearly", 85, 6), ("yes", 42, 1),
    ("yesterday", 86, 3), ("young", 29, 3), ("younger", 29, 3), ("youngest", 29, 3), ("yourself", 84, 2),
    ("zip", 52, 1),
];

/// Words that say no. All of them count as one.
#[rustfmt::skip]
pub(super) const NEGATIONS: &[&str] = &[
    "aint", "arent", "aucun", "aucune", "cannot", "cant", "couldnt", "didnt", "doesnt", "dont", "geen",
    "hadnt", "hasnt", "havent", "isnt", "jamais", "jamás", "kein", "keine", "keinen", "keiner", "mai",
    "nao", "ne", "neither", "nem", "nessun", "nessuna", "never", "ni", "nicht", "nie", "niemals", "niet",
    "ninguna", "ningún", "no", "nobody", "non", "none", "nooit", "nor", "not", "nothing", "nowhere",
    "nunca", "não", "pas", "shouldnt", "wasnt", "werent", "wont", "wouldnt",
];

/// Words that limit what is said.
#[rustfmt::skip]
pub(super) const LIMITS: &[&str] = &[
    "anti", "außer", "avoid", "avoiding", "barely", "behalve", "except", "excepto", "exceto", "excluded",
    "excluding", "hardly", "instead", "lack", "lacks", "missing", "nur", "ohne", "only", "opposite",
    "prevent", "rarely", "rather", "refuse", "sans", "sauf", "sem", "senza", "sin", "stop", "stopped",
    "stopping", "tranne", "unless", "without", "zonder",
];

/// Words that are numbers, with the digits that they stand for. `one` is missing: it mostly stands for a thing.
#[rustfmt::skip]
pub(super) const NUMBERS: &[(&str, &str)] = &[
    ("billion", "1000000000"), ("double", "x2"), ("dozen", "12"), ("eight", "8"), ("eighteen", "18"),
    ("eighty", "80"), ("eleven", "11"), ("fifteen", "15"), ("fifth", "5th"), ("fifty", "50"), ("five", "5"),
    ("forty", "40"), ("four", "4"), ("fourteen", "14"), ("fourth", "4th"), ("half", "1/2"),
    ("hundred", "100"), ("million", "1000000"), ("nine", "9"), ("nineteen", "19"), ("ninety", "90"),
    ("percent", "%"), ("quarter", "1/4"), ("seven", "7"), ("seventeen", "17"), ("seventy", "70"),
    ("six", "6"), ("sixteen", "16"), ("sixty", "60"), ("ten", "10"), ("third", "3rd"), ("thirteen", "13"),
    ("thirty", "30"), ("thousand", "1000"), ("three", "3"), ("triple", "x3"), ("twelve", "12"),
    ("twenty", "20"), ("twice", "x2"), ("two", "2"), ("zero", "0"),
];

/// Names of months and days.
#[rustfmt::skip]
pub(super) const DATES: &[&str] = &[
    "april", "august", "christmas", "december", "easter", "february", "friday", "january", "july", "june",
    "march", "monday", "november", "october", "saturday", "september", "sunday", "thursday", "tuesday",
    "wednesday",
];

/// Units, which count where a number stands before them.
#[rustfmt::skip]
pub(super) const UNITS: &[&str] = &[
    "am", "bed", "bedroom", "bit", "byte", "celsius", "cent", "cm", "day", "degree", "dollar", "eur",
    "euro", "fahrenheit", "feet", "foot", "g", "gallon", "gb", "gbp", "ghz", "gram", "guest", "hour", "hz",
    "inch", "inche", "kb", "kg", "khz", "kilogram", "kilometer", "kilometre", "km", "kw", "kwh", "l", "lb",
    "liter", "litre", "m", "mb", "meter", "metre", "mg", "mhz", "mile", "minute", "ml", "mm", "month",
    "ounce", "oz", "passenger", "pence", "people", "person", "pint", "pm", "pound", "quarter", "room",
    "second", "star", "stone", "tb", "ton", "tonne", "usd", "user", "v", "volt", "w", "week", "yard",
    "year",
];

/// Formats, programming languages and languages that an answer may be asked in.
#[rustfmt::skip]
pub(super) const FORMATS: &[&str] = &[
    "arabic", "bash", "bullet", "bullets", "c#", "c++", "cantonese", "chart", "chinese", "code", "csv",
    "czech", "danish", "diagram", "docx", "dutch", "email", "english", "essay", "excel", "finnish",
    "french", "german", "golang", "greek", "haiku", "haskell", "hebrew", "hindi", "html", "italian",
    "japanese", "java", "javascript", "json", "korean", "kotlin", "latex", "latin", "list", "mandarin",
    "markdown", "norwegian", "paragraph", "pdf", "perl", "php", "poem", "polish", "portuguese",
    "powershell", "python", "regex", "ruby", "russian", "rust", "scala", "spanish", "sql", "swedish",
    "swift", "table", "thai", "turkish", "tweet", "typescript", "ukrainian", "vietnamese", "word", "xml",
    "yaml",
];

/// Words that say nothing.
#[rustfmt::skip]
pub(super) const FILLERS: &[&str] = &[
    "a", "also", "an", "and", "but", "cheers", "er", "erm", "hello", "hey", "hi", "hiya", "hmm", "just",
    "kindly", "like", "morning", "ok", "okay", "please", "pls", "so", "sorry", "team", "thank", "thanks",
    "the", "there", "uh", "um", "well",
];

/// Words that questions begin with; another first word is what the question is about.
#[rustfmt::skip]
pub(super) const OPENERS: &[&str] = &[
    "about", "add", "after", "again", "all", "already", "am", "any", "anyone", "anything", "apparently",
    "are", "as", "at", "because", "before", "book", "buy", "by", "calculate", "call", "can", "can't",
    "cancel", "cant", "change", "check", "close", "compare", "concerning", "contact", "convert", "could",
    "create", "currently", "delete", "describe", "did", "do", "does", "don't", "dont", "email", "every",
    "explain", "find", "for", "from", "get", "give", "go", "going", "got", "had", "has", "have", "he",
    "hello", "help", "how", "however", "hows", "i", "id", "if", "im", "in", "is", "it", "its", "ive",
    "know", "let", "let's", "lets", "list", "look", "looking", "made", "make", "may", "me", "might", "mine",
    "must", "my", "need", "never", "no", "not", "of", "on", "one", "open", "or", "order", "our", "pay",
    "please", "possible", "recently", "regarding", "remind", "remove", "said", "say", "see", "sell", "send",
    "set", "shall", "she", "should", "show", "since", "some", "someone", "something", "still", "summarise",
    "summarize", "tell", "that", "their", "there", "theres", "these", "they", "this", "those", "to",
    "today", "tomorrow", "track", "translate", "update", "us", "use", "want", "wanted", "was", "we", "were",
    "what", "whats", "when", "whens", "where", "wheres", "which", "while", "who", "whom", "whos", "whose",
    "why", "why's", "whys", "will", "with", "would", "write", "yesterday", "you", "your", "youre",
];

/// What turns a word into its opposite when it stands before it.
pub(super) const PREFIXES: &[&str] = &["de", "dis", "il", "im", "in", "ir", "mis", "non", "un"];
