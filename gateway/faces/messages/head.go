package messages

import (
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/ratelimit/budget"
)

// forwarded are the members of a message that are passed on; any other is dropped. Those with
// fields of their own are written from these.
var forwarded = []string{
	"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "usage", "container", "context_management",
	"diagnostics",
	"input_transformations", memberVerdicts,
}

func isForwarded(name string) bool { return slices.Contains(forwarded, name) }

// madeUp are the members of the head that the provider fills as it likes.
var madeUp = []string{"stop_details", "container", "context_management", "diagnostics", "input_transformations", memberVerdicts}

// member is one member of an object.
type member struct {
	name  string
	value []byte
}

// memberVerdicts is what a provider says of the calls of its reply (safeguard_results).
const memberVerdicts = "safeguard_results"

// maxSafeguards bounds safeguard_results, in bytes.
const maxSafeguards = 256 << 10

// keepSafeguards leaves of what the provider says of calls what it says of those that are released. A value of another
// form becomes null: a client judges by itself then.
func keepSafeguards(raw []byte, released func(id string) bool) []byte {
	if rawjson.IsNull(raw) {
		return raw
	}
	kept, err := keptSafeguards(raw, released)
	if err != nil {
		return []byte("null")
	}
	return kept
}

// keptSafeguards is a list of objects, each with a type and a status, whose tool_uses are verdicts by
// the ids of calls.
func keptSafeguards(raw []byte, released func(id string) bool) ([]byte, error) {
	if len(raw) > maxSafeguards {
		return nil, errors.New("too long")
	}
	all := []byte{'['}
	err := part{raw, raw}.elements(func(entry part) error {
		if !isObject(entry.checked) {
			return rawjson.ErrNotObject
		}
		var fault error
		left := rewrite(entry.checked, func(name string, status []byte) []byte {
			if name != "status" {
				return status
			}
			if !isObject(status) {
				fault = rawjson.ErrNotObject
				return status
			}
			return rewrite(status, func(name string, uses []byte) []byte {
				if name != "tool_uses" {
					return uses
				}
				if !isObject(uses) {
					fault = rawjson.ErrNotObject
					return uses
				}
				return rewrite(uses, func(id string, verdict []byte) []byte {
					if !released(id) {
						return nil
					}
					return verdict
				})
			})
		})
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, left...)
		return fault
	})
	return append(all, ']'), err
}

// containerID is the id of the provider's container, as JSON; nil if there is none.
func containerID(head rawjson.Object) []byte {
	container, _ := rawjson.Members(head.Get("container"))
	if id := container.Get("id"); id != nil && id[0] == '"' {
		return id
	}
	return nil
}

// usage is how many tokens a reply took. Of a stream it holds the last value of each member: they are cumulative (AM-48).
type usage struct {
	input, created, read, output int64
	raw                          []byte // the whole object
}

// addUsage takes what the provider says of usage over.
func (r *reader) addUsage(raw []byte) error {
	if err := r.usage.add(raw); err != nil || r.usage.raw == nil {
		return err
	}
	r.reply.Usage = r.usage.taken()
	return nil
}

// add takes over the members of a usage object that are stated. Raw keeps the last value of
// each member. What is no count, and what is no object, is not taken: a budget then charges what it
// has reserved.
func (u *usage) add(raw []byte) error {
	if raw[0] != '{' {
		return nil
	}
	counts := map[string]*int64{
		"input_tokens": &u.input, "cache_creation_input_tokens": &u.created, "cache_read_input_tokens": &u.read, "output_tokens": &u.output,
	}
	var changes []member
	err := rawjson.Each(raw, func(of, value []byte) error {
		name := string(of)
		if into := counts[name]; into != nil && readCount(into, name, value) != nil {
			return nil //nolint:nilerr // a count that cannot be read is none
		}
		if !rawjson.IsNull(value) || u.raw == nil {
			changes = append(changes, member{name, value})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if u.raw == nil {
		u.raw = []byte("{}")
	}
	if len(changes) > maxUsage || len(u.raw)+len(raw) > maxUsageBytes {
		return errors.New("usage with too much in it")
	}
	u.raw = with(u.raw, changes...)
	return nil
}

// taken is the usage for the engine: the charge of a budget is all input, cached or not, and the output (AM-38).
func (u *usage) taken() turns.Taken {
	t := turns.Taken{Raw: u.raw, Spent: u.spent()}
	if !rawjson.HoldsNoCall(t.Raw) {
		t.Raw = u.sums()
	}
	for _, n := range []int64{u.input, u.created, u.read, u.output} {
		t.Tokens = turns.SaturatingAdd(t.Tokens, n)
	}
	return t
}

// sums is a usage object with the counts alone.
func (u *usage) sums() []byte {
	return fmt.Appendf(nil, `{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`, u.input,
		u.created, u.read, u.output)
}

// spent is what a reply has taken. Where the provider compacts the conversation, its sums are those of
// the answer alone, and iterations lists all that is billed.
func (u *usage) spent() budget.Usage {
	all := budget.Usage{Input: u.input, CachedInput: u.read, CacheWrite: u.created, Output: u.output}
	members, _ := rawjson.Members(u.raw)
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
