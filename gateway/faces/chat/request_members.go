package chat

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// ownMembers are the members of a request that this face reads, and answers for.
var ownMembers = []string{"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "n",
	memberLegacyChoice}

// forwardedMembers are those that are sent on as they were written: members by which no
// provider that documents them calls tools, fetches, runs code, or answers for another
// model than was asked for. A provider may invent others at any time, so that what is
// not listed is refused unless the operator allows it by name.
//
// Members that are documented and left out on purpose: web_search_options (OpenAI,
// Perplexity); plugins, models, route and preset (OpenRouter); search_parameters and
// deferred (xAI); enable_search, search_options and enable_code_interpreter (Qwen);
// compound_custom and search_settings (Groq); data_sources (Azure); extra_body
// (Gemini); mcp_servers; chat_template, logits_processors and custom_logit_processor,
// which are programs; kv_transfer_params, which names another server; api_base,
// fallbacks and guardrails (LiteLLM).
var forwardedMembers = [][]string{
	// OpenAI, chat completions.
	{
		"audio", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "modalities",
		"prediction",
		"presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier",
		"seed",
		"service_tier", "stop", "store", "temperature", "top_logprobs", "top_p", "user", "verbosity",
	},
	// Azure.
	{"user_security_context"},
	// Sampling, as OpenRouter, vLLM, SGLang, llama.cpp, Together, Fireworks and others have it.
	{
		"allowed_token_ids", "bad_words", "best_of", "do_sample", "dry_allowed_length", "dry_base", "dry_multiplier", "dry_penalty_last_n",
		"dry_sequence_breakers", "dynatemp_exponent", "dynatemp_range", "ignore_eos", "include_stop_str_in_output", "length_penalty",
		"min_keep",
		"min_p", "min_tokens", "mirostat", "mirostat_eta", "mirostat_lr", "mirostat_target", "mirostat_tau", "n_predict", "n_probs",
		"no_stop_trim", "random_seed", "repeat_last_n", "repeat_penalty", "repetition_penalty", "samplers", "skip_special_tokens",
		"spaces_between_special_tokens", "stop_regex", "stop_token_ids", "top_a", "top_k", "typical_p", "use_beam_search",
		"xtc_probability",
		"xtc_threshold",
	},
	// Output of a form.
	{
		"ebnf", "grammar", "guided_choice", "guided_decoding_backend", "guided_grammar", "guided_json", "guided_regex",
		"guided_whitespace_pattern", "json_schema", "regex", "structural_tag", "structured_outputs",
	},
	// Reasoning: OpenRouter, DeepSeek, Qwen, Anthropic, Z.ai, Moonshot, Groq, Together, Ollama, SGLang.
	{
		"clear_thinking", "disable_reasoning", "enable_thinking", "include_reasoning", "prompt_mode", "reasoning", "reasoning_format",
		"reasoning_history", "separate_reasoning", "stream_reasoning", "think", "thinking", "thinking_budget",
	},
	// The prompt: its template's variables, its length, what is quoted from.
	{
		"add_generation_prompt", "add_special_tokens", "chat_template_kwargs", "citation_options", "context_length_exceeded_behavior",
		"continue_final_message", "documents", "echo", "mm_processor_kwargs", "prompt_truncate_len", "transforms", "truncate_prompt_tokens",
		"vl_high_resolution_images",
	},
	// Moderation: Mistral, Together.
	{"safe_prompt", "safety_model"},
	// Information beside the answer.
	{"perf_metrics_in_response", "prompt_logprobs", "return_token_ids", "return_tokens", "return_tokens_as_token_ids", "timings_per_token",
		"usage"},
	// Where and when it is computed, and the caching of it. provider is OpenRouter's choice
	// among the providers of one model.
	{
		"cache_control", "cache_prompt", "cache_salt", "id_slot", "keep_alive", "n_keep", "priority", "prompt_cache_isolation_key",
		"provider",
		"request_id", "session_id", "t_max_predict_ms", "ttl", "user_id",
	},
}

// memberTemplate is the member with the variables of the prompt's template, and
// templateOverrides are names in it that stand for the template itself, or for how it is
// used: some servers take them as arguments of the function that fills the template in.
const memberTemplate = "chat_template_kwargs"

var templateOverrides = []string{"chat_template", "tokenize"}

// checkTemplateVariables refuses variables of the prompt's template that are more than one
// word, number or flag each, unless the operator has allowed the member: among them could
// be a template, which is a program, or tools of the provider.
func (d *dialogue) checkTemplateVariables() error {
	raw := d.members.Get(memberTemplate)
	if raw == nil || slices.Contains(d.Route.Rules.RequestMembers, memberTemplate) {
		return nil
	}
	variables, ok := rawjson.Members(raw)
	for _, m := range variables {
		ok = ok && m.Value[0] != '{' && m.Value[0] != '[' && !slices.Contains(templateOverrides, m.Name)
	}
	if !ok {
		return turns.Bad(memberTemplate, "%q must be an object of strings, numbers and booleans, without chat_template: other variables could replace the template of the prompt, or bring tools of the provider. "+
			"Leave them out; or the operator allows them, with request_members: [%s] at the upstream %s.", memberTemplate,
			parser.Quote(memberTemplate), d.Route.Upstream)
	}
	return nil
}

// checkModelVariant refuses a name of a model that switches on tools of the provider, unless the
// operator has listed that very name: at OpenRouter NAME:online searches the web, and a
// preset holds whatever was stored in it.
func (d *dialogue) checkModelVariant() error {
	name := strings.ToLower(strings.ReplaceAll(d.Route.UpstreamModel, " ", ""))
	switch {
	case !strings.Contains(name+":", ":online:") && !strings.Contains(name, "@preset/"):
	case d.Route.Exact:
		d.Admission.BringsResult("", nil) // what the provider reads for the model is not seen
	default:
		return turns.Bad("model", "The model %s has the provider call tools itself, and nobody would judge the calls. Ask for the model without it; or the operator lists this very name under models at the upstream %s.",
			parser.Quote(d.model), d.Route.Upstream)
	}
	return nil
}
