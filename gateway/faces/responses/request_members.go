package responses

import (
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

// ownMembers are the members of a request that this face reads, and answers for.
var ownMembers = []string{
	"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "stream", "stream_options", "store",
	"previous_response_id", "conversation", "background", "prompt", "include",
}

// forwardedMembers are sent on as they were written: by none of them the provider calls tools,
// fetches, runs code, or brings content that the request does not show (RS-10). Any other is
// refused unless the upstream's entry names it (request_members). Left out on purpose:
// context_management, access_programs, image.
var forwardedMembers = []string{
	"client_metadata", "max_output_tokens", "metadata", "moderation", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
	"reasoning", "safety_identifier", "service_tier", "temperature", "text", "top_logprobs", "top_p", "truncation", "user",
	"frequency_penalty", "presence_penalty",
}

// checkState refuses what makes the provider bring content that the request does not show,
// or keep an answer for later (RS-19, RS-70 to RS-74).
func (d *dialogue) checkState() error {
	rules := &d.Route.Rules.Responses
	if d.members.Get("conversation") != nil {
		return bad("conversation",
			"\"conversation\" is not taken here: its items are kept at the provider, and nobody here has judged them. "+
				"Send all items as \"input\".")
	}
	if d.members.Get("prompt") != nil && !rules.Prompt {
		return bad("prompt",
			"\"prompt\" is not taken here: a stored prompt may bring tools. The operator can allow it by responses.prompt of the upstream.")
	}
	background, err := turns.Flag(d.members, "background", false)
	if err != nil {
		return err
	}
	if background && !rules.Background {
		return bad("background",
			"\"background\" is not taken here: its answer could be fetched unjudged. The operator can allow it by "+
				"responses.background of the upstream.")
	}
	if _, err := turns.Flag(d.members, "store", true); err != nil {
		return err
	}
	raw := d.members.Get("previous_response_id")
	if raw == nil {
		return nil
	}
	id, ok := rawjson.String(raw)
	switch {
	case !ok:
		return bad("previous_response_id", "\"previous_response_id\" must be a string.")
	case rules.State != upstream.BindState:
		return bad("previous_response_id",
			"\"previous_response_id\" is not taken here: send all items as \"input\", with \"store\": false. The operator "+
				"can allow it by responses.state of the upstream.")
	}
	own, known := d.ledger.Get(owner{d.Admission.Principal(), d.Route.Upstream, id})
	if !known {
		return bad("previous_response_id", "There is no such response of this caller here.") // as for one of another caller (RS-72)
	}
	d.previous = own
	return nil
}

// checkInclude reads include: a list of words. Token probabilities are not taken: they repeat text
// that may be refused.
func (d *dialogue) checkInclude() error {
	raw := d.members.Get("include")
	if raw == nil {
		return nil
	}
	list, ok := rawjson.Elements(raw)
	if !ok {
		return bad("include", "\"include\" must be a list.")
	}
	for _, value := range list {
		word, ok := rawjson.String(value)
		if !ok || word == "message.output_text.logprobs" {
			return bad("include", "\"include\" must be a list of words; message.output_text.logprobs is not taken here.")
		}
	}
	return nil
}
