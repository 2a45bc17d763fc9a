//! The settings of a request, and what each ingress format calls them.

use gw_types::Operation;

/// Names a setting of a [`super::Prompt`] that a format may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The temperature.
    Temperature,
    /// Nucleus sampling.
    TopP,
    /// Sampling from the k likeliest.
    TopK,
    /// The frequency penalty.
    FrequencyPenalty,
    /// The presence penalty.
    PresencePenalty,
    /// The seed.
    Seed,
    /// The stop sequences.
    Stop,
    /// Answers at once.
    Choices,
    /// Whether log probabilities are wanted.
    Logprobs,
    /// How many log probabilities a token.
    TopLogprobs,
    /// Biases of single tokens.
    LogitBias,
    /// The output bound.
    MaxOutput,
    /// How hard to think, and what of it to show.
    Reasoning,
    /// The tools.
    Tools,
    /// Whether and which tool to call.
    ToolChoice,
    /// Whether several tools may be called at once.
    ParallelToolCalls,
    /// The form of the answer.
    Format,
    /// What the schema of the answer is for.
    FormatDescription,
    /// How wordy the answer is.
    Verbosity,
    /// The end user.
    User,
    /// The caller's labels.
    Metadata,
    /// The service tier.
    ServiceTier,
    /// The key of the prompt cache.
    CacheKey,
    /// Whether the provider keeps the answer.
    Store,
}

impl Setting {
    /// Returns the path of the setting in the format of the operation.
    pub const fn path(self, ingress: Operation) -> &'static str {
        match ingress {
            Operation::Messages | Operation::CountTokens => self.in_messages(),
            Operation::Responses => self.in_responses(),
            Operation::Chat | Operation::Completions | Operation::Embeddings => self.in_chat(),
        }
    }

    const fn in_chat(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::TopK => "top_k",
            Self::FrequencyPenalty => "frequency_penalty",
            Self::PresencePenalty => "presence_penalty",
            Self::Seed => "seed",
            Self::Stop => "stop",
            Self::Choices => "n",
            Self::Logprobs => "logprobs",
            Self::TopLogprobs => "top_logprobs",
            Self::LogitBias => "logit_bias",
            Self::MaxOutput => "max_completion_tokens",
            Self::Reasoning => "reasoning_effort",
            Self::Tools => "tools",
            Self::ToolChoice => "tool_choice",
            Self::ParallelToolCalls => "parallel_tool_calls",
            Self::Format => "response_format",
            Self::FormatDescription => "response_format.json_schema.description",
            Self::Verbosity => "verbosity",
            Self::User => "user",
            Self::Metadata => "metadata",
            Self::ServiceTier => "service_tier",
            Self::CacheKey => "prompt_cache_key",
            Self::Store => "store",
        }
    }

    const fn in_responses(self) -> &'static str {
        match self {
            Self::MaxOutput => "max_output_tokens",
            Self::Reasoning => "reasoning",
            Self::Format => "text.format",
            Self::Verbosity => "text.verbosity",
            Self::FormatDescription => "text.format.description",
            // Whoever names a number of them asks for them.
            Self::Logprobs => "top_logprobs",
            Self::Temperature
            | Self::TopP
            | Self::TopK
            | Self::FrequencyPenalty
            | Self::PresencePenalty
            | Self::Seed
            | Self::Stop
            | Self::Choices
            | Self::TopLogprobs
            | Self::LogitBias
            | Self::Tools
            | Self::ToolChoice
            | Self::ParallelToolCalls
            | Self::User
            | Self::Metadata
            | Self::ServiceTier
            | Self::CacheKey
            | Self::Store => self.in_chat(),
        }
    }

    const fn in_messages(self) -> &'static str {
        match self {
            Self::Stop => "stop_sequences",
            Self::MaxOutput => "max_tokens",
            Self::Reasoning => "thinking",
            Self::ParallelToolCalls => "tool_choice.disable_parallel_tool_use",
            Self::Format | Self::FormatDescription => "output_config.format",
            Self::User => "metadata.user_id",
            Self::Temperature
            | Self::TopP
            | Self::TopK
            | Self::FrequencyPenalty
            | Self::PresencePenalty
            | Self::Seed
            | Self::Choices
            | Self::Logprobs
            | Self::TopLogprobs
            | Self::LogitBias
            | Self::Tools
            | Self::ToolChoice
            | Self::Verbosity
            | Self::Metadata
            | Self::ServiceTier
            | Self::CacheKey
            | Self::Store => self.in_chat(),
        }
    }
}
