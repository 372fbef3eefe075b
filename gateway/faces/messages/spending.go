package messages

import (
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream/messages"
)

// spent is what a reply has taken. Where the provider compacts the conversation, its sums are those of
// the answer alone, and iterations lists all that is billed.
func spent(u *messages.Usage) budget.Usage {
	all := budget.Usage{Input: u.Input, CachedInput: u.CacheRead, CacheWrite: u.CacheCreation, Output: u.Output}
	members, _ := rawjson.Members(u.Raw)
	elements, ok := rawjson.Elements(members.Get("iterations"))
	if !ok {
		return all
	}
	var sum budget.Usage
	for _, of := range elements {
		sum.Input = turns.SaturatingAdd(sum.Input, turns.CountOf(of, "input_tokens"))
		sum.CachedInput = turns.SaturatingAdd(sum.CachedInput, turns.CountOf(of, "cache_read_input_tokens"))
		sum.CacheWrite = turns.SaturatingAdd(sum.CacheWrite, turns.CountOf(of, "cache_creation_input_tokens"))
		sum.Output = turns.SaturatingAdd(sum.Output, turns.CountOf(of, "output_tokens"))
	}
	return budget.Usage{
		Input: max(all.Input, sum.Input), CachedInput: max(all.CachedInput, sum.CachedInput),
		CacheWrite: max(all.CacheWrite, sum.CacheWrite), Output: max(all.Output, sum.Output),
	}
}
