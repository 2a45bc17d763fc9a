//! What requests can say, in the words of each caller's format.

#![expect(clippy::needless_pass_by_value, reason = "values are written where they are said")]

mod media;
mod tools;

use gw_dialects::translate::WireFormat::{
    self, AnthropicMessages, BedrockConverse, Gemini, OllamaChat, OpenAiChat, OpenAiResponses,
};
use gw_types::Operation;
use serde_json::{Value, json};

/// Something that requests can say.
pub(super) struct Feature {
    pub(super) name: &'static str,
    /// Texts that a body holds into which it has arrived.
    pub(super) marks: Vec<&'static str>,
    /// Texts that only some formats may ever see.
    pub(super) only_for: Vec<(&'static str, Vec<WireFormat>)>,
    chat: Option<Said>,
    responses: Option<Said>,
    messages: Option<Said>,
}

/// How one format says it.
pub(super) struct Said {
    /// The path under which its loss is reported.
    pub(super) path: &'static str,
    /// The fields that say it.
    pub(super) fields: Value,
    /// Fields that must be there for it to mean anything.
    pub(super) beside: Value,
    /// Where it may be left out without a word.
    pub(super) harmless_at: Vec<WireFormat>,
}

impl Feature {
    pub(super) fn said_by(&self, caller: Operation) -> Option<&Said> {
        match caller {
            Operation::Responses => self.responses.as_ref(),
            Operation::Messages => self.messages.as_ref(),
            _ => self.chat.as_ref(),
        }
    }

    fn chat(mut self, path: &'static str, fields: Value) -> Self {
        self.chat = Some(Said { path, fields, beside: json!({}), harmless_at: Vec::new() });
        self
    }

    fn responses(mut self, path: &'static str, fields: Value) -> Self {
        self.responses = Some(Said { path, fields, beside: json!({}), harmless_at: Vec::new() });
        self
    }

    fn messages(mut self, path: &'static str, fields: Value) -> Self {
        self.messages = Some(Said { path, fields, beside: json!({}), harmless_at: Vec::new() });
        self
    }

    fn only_for(mut self, mark: &'static str, formats: &[WireFormat]) -> Self {
        self.only_for.push((mark, formats.to_vec()));
        self
    }

    fn each(mut self, change: impl Fn(&mut Said, Operation)) -> Self {
        let said = [
            (&mut self.chat, Operation::Chat),
            (&mut self.responses, Operation::Responses),
            (&mut self.messages, Operation::Messages),
        ];
        for (said, caller) in said {
            said.iter_mut().for_each(|said| change(said, caller));
        }
        self
    }

    /// Where there is a tool.
    fn with_tools(self) -> Self {
        self.each(|said, caller| said.beside = json!({"tools": [tool(caller, "f", &json!({}))]}))
    }

    /// What the table of the harmless has, wherever it has no place.
    fn harmless(self) -> Self {
        let all = [OpenAiChat, OpenAiResponses, AnthropicMessages, Gemini, BedrockConverse, OllamaChat];
        self.harmless_at(&all)
    }

    /// What these formats do by themselves.
    fn harmless_at(self, formats: &[WireFormat]) -> Self {
        self.each(|said, _| said.harmless_at = formats.to_vec())
    }
}

fn says(name: &'static str, marks: &[&'static str]) -> Feature {
    Feature { name, marks: marks.to_vec(), only_for: Vec::new(), chat: None, responses: None, messages: None }
}

const SCHEMA: &str = r#"{"type":"object","properties":{"mark-a":{"type":"string"}},"required":["mark-a"],"additionalProperties":false}"#;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// A tool as a caller writes it, with more of its own fields.
fn tool(caller: Operation, name: &str, more: &Value) -> Value {
    let parameters = match caller {
        Operation::Messages => "input_schema",
        _ => "parameters",
    };
    let mut tool = json!({"name": name, parameters: {"type": "object", "properties": {}}});
    for (key, value) in more.as_object().unwrap() {
        tool[if key == "parameters" { parameters } else { key }] = value.clone();
    }
    match caller {
        Operation::Messages => tool,
        Operation::Responses => {
            tool["type"] = "function".into();
            tool
        }
        _ => json!({"type": "function", "function": tool}),
    }
}

/// Fields that declare one tool.
fn tools(caller: Operation, more: &Value) -> Value {
    json!({"tools": [tool(caller, "mark-f", more)]})
}

/// A conversation in which a tool was called, with its result's own content.
fn chat_call(result: Value) -> Value {
    let call = json!({"id": "call-1", "type": "function", "function": {"name": "mark-f", "arguments": "{\"x\":\"mark-x\"}"}});
    json!({"messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "content": result},
    ]})
}

fn responses_call(output: Value) -> Value {
    json!({"input": [
        {"role": "user", "content": "hello"},
        {"type": "function_call", "call_id": "call-1", "name": "mark-f", "arguments": "{\"x\":\"mark-x\"}"},
        {"type": "function_call_output", "call_id": "call-1", "output": output},
    ]})
}

fn messages_call(result: Value) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": "call-1"});
    for (key, value) in result.as_object().unwrap() {
        block[key] = value.clone();
    }
    json!({"messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call-1", "name": "mark-f", "input": {"x": "mark-x"}}]},
        {"role": "user", "content": [block]},
    ]})
}

/// One user message of these parts.
fn chat_parts(parts: Value) -> Value {
    json!({"messages": [{"role": "user", "content": parts}]})
}

fn input_parts(parts: Value) -> Value {
    json!({"input": [{"role": "user", "content": parts}]})
}

/// A conversation that the model's own words were part of.
fn after(field: &str, turn: Value) -> Value {
    json!({field: [{"role": "user", "content": "hello"}, turn, {"role": "user", "content": "go on"}]})
}

pub(super) fn features() -> Vec<Feature> {
    let mut all = conversation();
    all.extend(media::media());
    all.extend(tools::tool_use());
    all.extend(history());
    all.extend(answer_forms());
    all.extend(sampling());
    all.extend(labels());
    all.extend(unknown());
    all
}

fn conversation() -> Vec<Feature> {
    vec![
        says("system prompt", &["mark-s"])
            .chat("messages[0]", json!({"messages": [{"role": "system", "content": "mark-s"}, {"role": "user", "content": "hello"}]}))
            .responses("instructions", json!({"instructions": "mark-s"}))
            .messages("system", json!({"system": "mark-s"})),
        says("developer prompt", &["mark-s"])
            .chat("messages[0]", json!({"messages": [{"role": "developer", "content": "mark-s"}, {"role": "user", "content": "hello"}]}))
            .responses("input[0]", json!({"input": [{"role": "developer", "content": "mark-s"}, {"role": "user", "content": "hello"}]})),
        says("system prompt between turns", &["mark-s"])
            .chat("messages[1]", after("messages", json!({"role": "system", "content": "mark-s"})))
            .responses("input[1]", after("input", json!({"role": "system", "content": "mark-s"})))
            .messages("messages[1]", after("messages", json!({"role": "system", "content": "mark-s"}))),
        says("several turns", &["mark-1", "mark-2"])
            .chat("messages", json!({"messages": [{"role": "user", "content": "mark-1"}, {"role": "assistant", "content": "mark-2"}, {"role": "user", "content": "go on"}]}))
            .responses("input", json!({"input": [{"role": "user", "content": "mark-1"}, {"role": "assistant", "content": "mark-2"}, {"role": "user", "content": "go on"}]}))
            .messages("messages", json!({"messages": [{"role": "user", "content": "mark-1"}, {"role": "assistant", "content": "mark-2"}, {"role": "user", "content": "go on"}]})),
        says("beginning of the answer", &["mark-1"])
            .chat("messages[1]", json!({"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "mark-1"}]}))
            .messages("messages[1]", json!({"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "mark-1"}]})),
        says("name of a speaker", &["mark-n"])
            .chat("messages[0].name", json!({"messages": [{"role": "user", "name": "mark-n", "content": "hello"}]})),
    ]
}

fn history() -> Vec<Feature> {
    let details = |signature: &str| {
        json!({"role": "assistant", "content": "a", "reasoning_content": "mark-t",
            "reasoning_details": [{"type": "reasoning.text", "text": "mark-t", "signature": signature}]})
    };
    let blocks =
        |block: Value| json!({"role": "assistant", "content": [block, {"type": "text", "text": "a"}]});
    let thinking =
        |signature: &str| blocks(json!({"type": "thinking", "thinking": "mark-t", "signature": signature}));
    let gemini_call = json!({"messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call-1", "type": "function",
            "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "bWFyay1n"}}}]},
        {"role": "tool", "tool_call_id": "call-1", "content": "r"}]});
    let mut plain_call = gemini_call.clone();
    plain_call["messages"][1]["tool_calls"][0].as_object_mut().unwrap().remove("extra_content");
    vec![
        says("thinking signed by Anthropic", &["mark-t", "mark-sig"])
            .only_for("mark-sig", &[AnthropicMessages])
            .chat("messages[1].reasoning_details", after("messages", details("mark-sig")))
            .messages("messages[1].content[0]", after("messages", thinking("mark-sig"))),
        says("thinking signed by Bedrock", &["mark-t", "mark-sig"])
            .only_for("mark-sig", &[BedrockConverse])
            .chat("messages[1].reasoning_details", after("messages", details("gw1.bedrock.mark-sig")))
            .messages("messages[1].content[0]", after("messages", thinking("gw1.bedrock.mark-sig"))),
        says("thinking signed by Gemini", &["bWFyay1n"])
            .only_for("bWFyay1n", &[Gemini])
            .chat("messages[1].reasoning_details", after("messages", details("gw1.gemini.bWFyay1n")))
            .messages("messages[1].content[0]", after("messages", thinking("gw1.gemini.bWFyay1n"))),
        says("call signed by Gemini", &["bWFyay1n"])
            .only_for("bWFyay1n", &[Gemini])
            .chat("messages[1].tool_calls[0]", gemini_call)
            .each(|said, _| said.beside = plain_call.clone()),
        says("encrypted thinking of Anthropic's", &["mark-enc"])
            .only_for("mark-enc", &[AnthropicMessages])
            .messages("messages[1].content[0]", after("messages", blocks(json!({"type": "redacted_thinking", "data": "mark-enc"})))),
        says("encrypted reasoning of OpenAI's", &["mark-enc"])
            .only_for("mark-enc", &[OpenAiResponses])
            .chat("messages[1].reasoning_details", after("messages", json!({"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.encrypted", "data": "mark-enc"}]})))
            .responses("input[1]", after("input", json!({"type": "reasoning", "summary": [], "encrypted_content": "mark-enc"}))),
        says("unsigned reasoning", &["mark-t"])
            .chat("messages[1].reasoning_content", after("messages", json!({"role": "assistant", "content": "a", "reasoning_content": "mark-t"})))
            .responses("input[1]", after("input", json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "mark-t"}]}))),
        says("citations of an earlier answer", &["mark.example"])
            .chat("messages[1].annotations", after("messages", json!({"role": "assistant", "content": "a", "annotations": [{"type": "url_citation", "url_citation": {"url": "https://mark.example", "title": "t", "start_index": 0, "end_index": 1}}]})))
            .responses("input[1].content[0]", after("input", json!({"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": [{"type": "url_citation", "url": "https://mark.example", "title": "t", "start_index": 0, "end_index": 1}]}]})))
            .messages("messages[1].content[0]", after("messages", json!({"role": "assistant", "content": [{"type": "text", "text": "a", "citations": [{"type": "web_search_result_location", "url": "https://mark.example", "title": "t", "encrypted_index": "e", "cited_text": "q"}]}]})))
            .each(|said, caller| said.beside = match caller {
                Operation::Responses => after("input", json!({"role": "assistant", "content": [{"type": "output_text", "text": "a"}]})),
                Operation::Messages => after("messages", json!({"role": "assistant", "content": [{"type": "text", "text": "a"}]})),
                _ => after("messages", json!({"role": "assistant", "content": "a"})),
            }),
        says("earlier refusal", &["mark-r"])
            .chat("messages[1]", after("messages", json!({"role": "assistant", "content": null, "refusal": "mark-r"})))
            .responses("input[1]", after("input", json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "mark-r"}]}))),
        says("a provider's own block", &["mark-b"])
            .chat("messages[1].content[0]", after("messages", json!({"role": "assistant", "content": [{"type": "mark-b", "x": 1}, {"type": "text", "text": "a"}]})))
            .responses("input[1]", after("input", json!({"type": "web_search_call", "id": "mark-b", "status": "completed", "action": {"type": "search", "query": "q"}})))
            .messages("messages[1].content[0]", after("messages", blocks(json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "mark-b"}})))),
    ]
}

fn answer_forms() -> Vec<Feature> {
    let chat = |format: Value| json!({"response_format": {"type": "json_schema", "json_schema": format}});
    let text = |format: Value| json!({"text": {"format": with_type(format)}});
    vec![
        says("some JSON object", &[])
            .chat("response_format", json!({"response_format": {"type": "json_object"}}))
            .responses("text.format", json!({"text": {"format": {"type": "json_object"}}})),
        says("JSON by a schema", &["mark-a"])
            .chat("response_format", chat(json!({"name": "n", "schema": schema(), "strict": true})))
            .responses("text.format", text(json!({"name": "n", "schema": schema(), "strict": true})))
            .messages(
                "output_config.format",
                json!({"output_config": {"format": {"type": "json_schema", "schema": schema()}}}),
            ),
        says("what a schema is for", &["mark-d"])
            .chat(
                "response_format",
                chat(json!({"name": "n", "schema": schema(), "strict": true, "description": "mark-d"})),
            )
            .responses(
                "text.format",
                text(json!({"name": "n", "schema": schema(), "strict": true, "description": "mark-d"})),
            )
            .each(|said, caller| {
                said.beside = match caller {
                    Operation::Responses => text(json!({"name": "n", "schema": schema(), "strict": true})),
                    _ => chat(json!({"name": "n", "schema": schema(), "strict": true})),
                }
            }),
        says("JSON by a schema, beside tools", &["mark-a"])
            .chat("response_format", chat(json!({"name": "n", "schema": schema(), "strict": true})))
            .responses("text.format", text(json!({"name": "n", "schema": schema(), "strict": true})))
            .messages(
                "output_config.format",
                json!({"output_config": {"format": {"type": "json_schema", "schema": schema()}}}),
            )
            .with_tools(),
        says("effort of reasoning", &[])
            .chat("reasoning_effort", json!({"reasoning_effort": "high"}))
            .responses("reasoning", json!({"reasoning": {"effort": "high"}}))
            .messages("thinking", json!({"output_config": {"effort": "high"}})),
        says("no reasoning", &[])
            .chat("reasoning_effort", json!({"reasoning_effort": "none"}))
            .responses("reasoning", json!({"reasoning": {"effort": "none"}}))
            .messages("thinking", json!({"thinking": {"type": "disabled"}}))
            .harmless_at(&[BedrockConverse]),
        says("budget of thinking", &[])
            .chat("reasoning", json!({"reasoning": {"max_tokens": 2_048}}))
            .messages("thinking", json!({"thinking": {"type": "enabled", "budget_tokens": 2_048}})),
        says("thinking as is right", &[])
            .messages("thinking", json!({"thinking": {"type": "adaptive"}}))
            .harmless_at(&[Gemini, OllamaChat]),
        says("reasoning that is shown", &[])
            .responses("reasoning", json!({"reasoning": {"effort": "high", "summary": "detailed"}}))
            .messages("thinking", json!({"thinking": {"type": "adaptive", "display": "summarized"}}))
            .each(|said, caller| {
                said.beside = match caller {
                    Operation::Responses => json!({"reasoning": {"effort": "high"}}),
                    _ => json!({"thinking": {"type": "adaptive", "display": "omitted"}}),
                }
            })
            .harmless_at(&[BedrockConverse, OllamaChat]),
        says("verbosity", &[])
            .chat("verbosity", json!({"verbosity": "low"}))
            .responses("text.verbosity", json!({"text": {"verbosity": "low"}})),
        says("stream with its usage", &[])
            .chat("stream", json!({"stream": true, "stream_options": {"include_usage": true}}))
            .responses("stream", json!({"stream": true}))
            .messages("stream", json!({"stream": true}))
            // Google and Amazon have an address for streams.
            .harmless(),
    ]
}

fn with_type(mut format: Value) -> Value {
    format["type"] = "json_schema".into();
    format
}

fn sampling() -> Vec<Feature> {
    let all = |name, marks: &[&'static str], field: &'static str, value: Value| {
        says(name, marks)
            .chat(field, json!({ field: value }))
            .responses(field, json!({ field: value }))
            .messages(field, json!({ field: value }))
    };
    let of_openai = |name, marks: &[&'static str], field: &'static str, value: Value| {
        says(name, marks).chat(field, json!({ field: value }))
    };
    vec![
        all("temperature", &["0.31"], "temperature", json!(0.31)),
        says("temperature above 1", &[])
            .chat("temperature", json!({"temperature": 1.5}))
            .responses("temperature", json!({"temperature": 1.5})),
        all("nucleus sampling", &["0.31"], "top_p", json!(0.31)),
        says("temperature and nucleus sampling", &["0.31", "0.32"])
            .chat("top_p", json!({"temperature": 0.31, "top_p": 0.32}))
            .messages("top_p", json!({"temperature": 0.31, "top_p": 0.32})),
        says("the k likeliest", &["31"])
            .chat("top_k", json!({"top_k": 31}))
            .messages("top_k", json!({"top_k": 31})),
        of_openai("frequency penalty", &["0.31"], "frequency_penalty", json!(0.31)),
        of_openai("presence penalty", &["0.31"], "presence_penalty", json!(0.31)),
        of_openai("seed", &["3131"], "seed", json!(3131)),
        says("stop sequence", &["mark-stop"])
            .chat("stop", json!({"stop": "mark-stop"}))
            .messages("stop_sequences", json!({"stop_sequences": ["mark-stop"]})),
        says("six stop sequences", &["mark-6"])
            .messages("stop_sequences", json!({"stop_sequences": ["1", "2", "3", "4", "5", "mark-6"]})),
        of_openai("several answers", &["3"], "n", json!(3)),
        of_openai("log probabilities", &[], "logprobs", json!(true)),
        says("log probabilities of the likeliest", &["7"])
            .chat("top_logprobs", json!({"logprobs": true, "top_logprobs": 7}))
            .responses("top_logprobs", json!({"top_logprobs": 7}))
            .each(|said, caller| {
                if caller == Operation::Chat {
                    said.beside = json!({"logprobs": true});
                }
            }),
        of_openai("bias of tokens", &["3131"], "logit_bias", json!({"3131": 5})),
        says("output bound", &["3131"])
            .chat("max_completion_tokens", json!({"max_completion_tokens": 3131}))
            .responses("max_output_tokens", json!({"max_output_tokens": 3131}))
            .messages("max_tokens", json!({"max_tokens": 3131})),
        of_openai("output bound, older name", &["3131"], "max_tokens", json!(3131)),
    ]
}

fn labels() -> Vec<Feature> {
    let mark = json!({"type": "ephemeral"});
    let both = |name, marks: &[&'static str], field: &'static str, value: Value| {
        says(name, marks).chat(field, json!({ field: value })).responses(field, json!({ field: value }))
    };
    vec![
        says("cache mark on a text", &[])
            .chat(
                "messages[0].content[0]",
                chat_parts(json!([{"type": "text", "text": "hello", "cache_control": mark}])),
            )
            .messages(
                "messages[0].content[0]",
                chat_parts(json!([{"type": "text", "text": "hello", "cache_control": mark}])),
            )
            .harmless(),
        says("cache mark on a tool", &[])
            .messages("tools[0]", tools(Operation::Messages, &json!({"cache_control": mark})))
            .each(|said, caller| said.beside = tools(caller, &json!({})))
            .harmless(),
        both("key of the prompt cache", &["mark-k"], "prompt_cache_key", json!("mark-k")).harmless(),
        both("the default tier", &[], "service_tier", json!("default")).harmless_at(&[Gemini, OllamaChat]),
        both("the flexible tier", &["flex"], "service_tier", json!("flex")),
        says("the standard tier alone", &[])
            .messages("service_tier", json!({"service_tier": "standard_only"}))
            .harmless_at(&[Gemini, BedrockConverse, OllamaChat]),
        both("labels", &["mark-k", "mark-v"], "metadata", json!({"mark-k": "mark-v"})).harmless(),
        says("end user", &["mark-u"])
            .chat("user", json!({"user": "mark-u"}))
            .responses("user", json!({"user": "mark-u"}))
            .messages("metadata.user_id", json!({"metadata": {"user_id": "mark-u"}}))
            .harmless(),
        both("end user, newer name", &["mark-u"], "safety_identifier", json!("mark-u")).harmless(),
        both("answer that is kept", &[], "store", json!(true)).harmless(),
    ]
}

fn unknown() -> Vec<Feature> {
    let field = |name: &'static str| json!({ name: {"mark": "mark-u"} });
    vec![
        says("unknown field", &["mark-u"])
            .chat("mark_field", field("mark_field"))
            .responses("mark_field", field("mark_field"))
            .messages("mark_field", field("mark_field")),
        says("unknown field of a message", &["mark-u"])
            .chat(
                "messages[0].mark",
                json!({"messages": [{"role": "user", "content": "hello", "mark": "mark-u"}]}),
            )
            .messages(
                "messages[0].mark",
                json!({"messages": [{"role": "user", "content": "hello", "mark": "mark-u"}]}),
            ),
        says("unknown field of a part", &["mark-u"])
            .chat(
                "messages[0].content[0].mark",
                chat_parts(json!([{"type": "text", "text": "hello", "mark": "mark-u"}])),
            )
            .responses(
                "input[0].content[0].mark",
                input_parts(json!([{"type": "input_text", "text": "hello", "mark": "mark-u"}])),
            )
            .messages(
                "messages[0].content[0].mark",
                chat_parts(json!([{"type": "text", "text": "hello", "mark": "mark-u"}])),
            ),
        says("unknown field of a tool", &["mark-u"])
            .responses("tools[0].mark", tools(Operation::Responses, &json!({"mark": "mark-u"})))
            .messages("tools[0].mark", tools(Operation::Messages, &json!({"mark": "mark-u"})))
            .chat("tools[0].function.mark", tools(Operation::Chat, &json!({"mark": "mark-u"}))),
        says("unknown part", &["mark-u"])
            .chat(
                "messages[0].content[0]",
                chat_parts(json!([{"type": "mark-u"}, {"type": "text", "text": "hello"}])),
            )
            .responses(
                "input[0].content[0]",
                input_parts(json!([{"type": "mark-u"}, {"type": "input_text", "text": "hello"}])),
            )
            .messages(
                "messages[0].content[0]",
                chat_parts(json!([{"type": "mark-u"}, {"type": "text", "text": "hello"}])),
            ),
        says("web search of the answer", &["mark-u"])
            .chat("web_search_options", json!({"web_search_options": {"user_location": "mark-u"}})),
        says("predicted answer", &["mark-u"])
            .chat("prediction", json!({"prediction": {"type": "content", "content": "mark-u"}})),
        says("kinds of output", &["audio"])
            .chat(
                "modalities",
                json!({"modalities": ["text", "audio"], "audio": {"voice": "v", "format": "wav"}}),
            )
            .each(|said, _| said.beside = json!({"audio": {"voice": "v", "format": "wav"}})),
        says("how to cut a long conversation", &["auto"])
            .responses("truncation", json!({"truncation": "auto"}))
            .messages("context_management", json!({"context_management": {"edits": [{"type": "auto"}]}})),
        says("servers of tools", &["mark-u"]).messages(
            "mcp_servers",
            json!({"mcp_servers": [{"type": "url", "url": "https://mark-u", "name": "n"}]}),
        ),
    ]
}
