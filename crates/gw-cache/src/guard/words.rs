//! The words that no two comparable questions may differ in.
//!
//! Negations and what limits a statement, opposites, question words and modal verbs, numbers, days and units, who is
//! meant, names of formats and languages: words whose change changes the answer more often than not. A word too many
//! costs a hit, a word too few may give a wrong answer. The list is English, with the commonest negations of six other
//! languages.

/// The words, in lower case, sorted by bytes.
#[rustfmt::skip] // One word a line would be a list of many pages.
pub(super) const WORDS: &[&str] = &[
    "above", "absolute", "accept", "accepted", "accepting", "accepts", "add", "added", "adding", "adds",
    "adult", "adults", "advantage", "advantages", "after", "afternoon", "all", "allow", "allowed",
    "allowing", "allows", "always", "annual", "annually", "anti", "any", "anyone", "approve", "approved",
    "approves", "april", "arabic", "arent", "arrival", "arrive", "ascending", "async", "attach", "attack",
    "aucun", "aucune", "august", "autumn", "außer", "avoid", "avoiding", "avoids", "backward", "backwards",
    "bad", "ban", "banned", "bans", "barely", "before", "begin", "begins", "behalve", "below", "benefit",
    "benefits", "best", "better", "big", "bigger", "biggest", "billion", "block", "blocked", "blocking",
    "blocks", "borrow", "both", "boy", "boys", "bullet", "bullets", "buy", "buying", "buys", "can",
    "cancel", "canceled", "cancelled", "cancels", "cannot", "cant", "celsius", "cent", "cents", "cheap",
    "cheaper", "cheapest", "child", "children", "chinese", "close", "closed", "closes", "closing", "cm",
    "cold", "compress", "connect", "cons", "could", "couldnt", "create", "created", "creates", "creating",
    "credit", "csv", "current", "daily", "dangerous", "day", "days", "debit", "december", "decline",
    "declined", "declines", "decode", "decrease", "decreased", "decreases", "decrypt", "defend", "delete",
    "deleted", "deletes", "deleting", "denied", "denies", "deny", "depart", "departure", "deposit",
    "descending", "detach", "didnt", "disable", "disabled", "disables", "disabling", "disadvantage",
    "disadvantages", "disconnect", "doesnt", "dollar", "dollars", "dont", "double", "down", "downgrade",
    "download", "downloading", "downloads", "dozen", "drawbacks", "dutch", "each", "earlier", "earliest",
    "early", "eight", "eighteen", "eighty", "either", "eleven", "enable", "enabled", "enables", "enabling",
    "encode", "encrypt", "end", "ended", "ends", "english", "euro", "euros", "evening", "every",
    "everybody", "everyone", "except", "excepto", "exceto", "exclude", "excludes", "excluding",
    "expensive", "export", "exporting", "exports", "external", "extract", "fahrenheit", "fail", "failed",
    "failing", "fails", "false", "fast", "faster", "fastest", "february", "feet", "female", "fewer",
    "fifteen", "fifth", "fifty", "finish", "first", "five", "fixed", "foot", "forbid", "forbidden",
    "forty", "forward", "forwards", "four", "fourteen", "fourth", "free", "french", "friday", "from",
    "full", "future", "gain", "gb", "geen", "german", "girl", "girls", "good", "gram", "grams", "gross",
    "half", "hardly", "hidden", "hide", "high", "higher", "highest", "hindi", "horizontal", "hot", "hour",
    "hourly", "hours", "how", "html", "hundred", "illegal", "import", "importing", "imports", "in", "inch",
    "inches", "include", "includes", "including", "increase", "increased", "increases", "input", "inside",
    "install", "instead", "internal", "into", "isnt", "italian", "jamais", "jamás", "january", "japanese",
    "join", "json", "july", "june", "kb", "kein", "keine", "keinen", "keiner", "kg", "kid", "kids",
    "kilogram", "kilograms", "kilometer", "kilometers", "kilometre", "kilometres", "km", "korean", "lack",
    "lacks", "large", "larger", "largest", "last", "late", "later", "latest", "least", "leave", "left",
    "legal", "lend", "less", "list", "liter", "liters", "litre", "litres", "lock", "locked", "locks",
    "login", "logout", "long", "longer", "longest", "lose", "loss", "low", "lower", "lowers", "lowest",
    "mai", "male", "man", "mandatory", "many", "march", "markdown", "max", "maximum", "may", "mb", "men",
    "meter", "meters", "metre", "metres", "mg", "midnight", "might", "mile", "miles", "million", "min",
    "minimum", "minute", "minutes", "mm", "monday", "month", "monthly", "months", "more", "morning",
    "most", "ms", "much", "multi", "must", "myself", "nao", "ne", "need", "needs", "neglect", "neither",
    "net", "never", "new", "newer", "newest", "next", "nicht", "nie", "niemals", "niet", "night", "nine",
    "nineteen", "ninety", "ninguna", "ningún", "no", "nobody", "non", "none", "nooit", "noon", "nor",
    "not", "nothing", "november", "nunca", "nur", "não", "october", "off", "often", "ohne", "old", "older",
    "oldest", "on", "once", "one", "only", "open", "opened", "opening", "opens", "optional", "ounce",
    "ounces", "out", "output", "outside", "over", "paid", "part", "pas", "pass", "passed", "passes",
    "past", "pause", "per", "percent", "permit", "permits", "permitted", "portuguese", "post", "pound",
    "pounds", "pre", "prevent", "preventing", "prevents", "previous", "private", "profit", "pros",
    "public", "pull", "push", "quarter", "quit", "raise", "rather", "receive", "received", "receives",
    "receiving", "refuse", "reject", "rejected", "rejecting", "rejects", "relative", "remove", "removed",
    "removes", "removing", "renew", "request", "required", "response", "resume", "right", "risk", "risks",
    "russian", "safe", "sans", "saturday", "sauf", "second", "seconds", "self", "sell", "selling", "sells",
    "sem", "semi", "send", "sending", "sends", "sent", "senza", "september", "seven", "seventeen",
    "seventy", "shall", "short", "shorter", "should", "shouldnt", "show", "shows", "sin", "single", "six",
    "sixteen", "sixty", "slow", "slower", "slowest", "small", "smaller", "smallest", "some", "sometimes",
    "spanish", "spring", "sql", "start", "started", "starting", "starts", "stop", "stopped", "stopping",
    "stops", "summarize", "summary", "summer", "sunday", "sync", "table", "tb", "ten", "third", "thirteen",
    "thirty", "thousand", "three", "thursday", "to", "today", "tomorrow", "tranne", "translate", "triple",
    "true", "tuesday", "twelve", "twenty", "twice", "two", "unblock", "under", "uninstall", "unless",
    "unlock", "up", "upgrade", "upgrades", "upgrading", "upload", "uploading", "uploads", "variable",
    "vertical", "visible", "wasnt", "wednesday", "week", "weekday", "weekdays", "weekend", "weekends",
    "weekly", "weeks", "werent", "what", "when", "where", "whether", "which", "who", "whom", "whose",
    "why", "will", "win", "winter", "with", "withdraw", "withdrawal", "without", "woman", "women", "wont",
    "worse", "worst", "would", "wouldnt", "xml", "yaml", "year", "yearly", "years", "yes", "yesterday",
    "yourself", "zero", "zonder",
];

/// What turns a word into its opposite when it stands before it. Whoever begins like this by chance is only compared.
pub(super) const PREFIXES: &[&str] = &["de", "dis", "il", "im", "in", "ir", "mis", "non", "un"];

/// What turns a word into its opposite when it stands after it.
pub(super) const SUFFIXES: &[&str] = &["less"];
