package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// GivenKey names a call by its caller, its session and the id that the model's provider gave it.
type GivenKey [sha256.Size]byte

// givenKey is the key of a call of a request; ok is false where no hook could name it.
func givenKey(principal string, of *Request, id string) (key GivenKey, ok bool) {
	session := cmp.Or(of.Thread, of.Session)
	if len(of.Ancestors) > 0 {
		session = of.Ancestors[0]
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q", principal, session, id)), session != "" && id != ""
}

// Given is a call of a model that was handed over to an application, with all that its verdict is bound to. By it the call
// is recognised where the hook of that application asks about it. It does not change.
type Given struct {
	// CallID is the id by which the call is recorded, and Digest that of the configuration that judged it.
	CallID, Digest string

	by        judgedBy
	arguments string // their valueDigest
	approved  bool   // by people
}

// judgedBy is what the verdict on a call is bound to beside its arguments and the configuration.
type judgedBy struct {
	user          string
	subject       Subject
	tool, version string
}

func (c *Call) judgedBy() judgedBy {
	return judgedBy{c.request.User, c.subject, c.tool.Name(), c.tool.Version()}
}

// Given returns the call as it is handed over, and its key. ok is false where no hook can ask about it: it has no session or
// no id, or its tool came with the request.
func (c *Call) Given() (key GivenKey, g Given, ok bool) {
	n := c.input.Native
	if c.mode != ModeEnforce || c.request.Hook != nil || n == nil || c.tool == nil || c.tool.Index() < 0 {
		return key, g, false
	}
	if key, ok = givenKey(principalName(c.principal), &c.request, n.ID); ok {
		g = Given{CallID: c.id, Digest: c.config.Digest, by: c.judgedBy(), arguments: valueDigest(c.arguments()),
			approved: len(c.approvals.using) > 0}
	}
	return key, g, ok
}

// GivenKey is the key under which the call of an id was handed over; ok is false where none could be.
func (a *Admission) GivenKey(id string) (key GivenKey, ok bool) {
	return givenKey(a.principal, &a.request, id)
}

// standing are the steps through which a call that has passed is taken again where its application asks about it, from a folder
// of its own. What the policy says is known.
var standing = slices.DeleteFunc(slices.Clone(judge), func(c check) bool { return c.foresee != nil })

// Stands reports whether a call is the one that was handed over, the same tool with the same arguments, for the same agent,
// place and user, by the configuration that judges now, and may run as the request says, in its folder. changed reports whether
// it has another tool or other arguments. Nothing is taken, counted or recorded.
//
// Agents add arguments that the tool's schema has as defaults. Such a call is the same where the policy lets it pass as it is
// now, and people did not have to approve it.
func (a *Admission) Stands(ctx context.Context, g *Given, call NativeCall) (stands, changed bool) {
	if a.kernel == nil {
		return false, false
	}
	d := a.Open(ctx, ModeEnforce, Input{Native: &call}).decision
	d.dropTraces()
	d.judgement.checked = true
	c := d.calls[0]
	if c.refused != nil {
		return false, false
	}
	passes := !d.run(ctx, standing, true)
	exact := valueDigest(c.arguments()) == g.arguments
	if call.Name != g.by.tool || g.arguments == "" || !exact && (c.tool == nil || valueDigest(c.withoutDefaults()) != g.arguments) {
		return false, true
	}
	stands = passes && c.config.Digest == g.Digest && c.judgedBy() == g.by
	if stands && !exact {
		stands = !g.approved && guarded(ctx, check{stage: refusal.Permission, run: checkPermission}, c) == nil
	}
	return stands, false
}

// withoutDefaults are the arguments but for those that have the value which the tool's schema gives as their default.
func (c *Call) withoutDefaults() map[string]any {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(c.tool.InputSchema(), &schema) != nil {
		return nil
	}
	rest := maps.Clone(c.arguments())
	maps.DeleteFunc(rest, func(name string, value any) bool {
		var property struct {
			Default json.RawMessage `json:"default"`
		}
		return json.Unmarshal(schema.Properties[name], &property) == nil && property.Default != nil &&
			valueDigest(parser.Decode(property.Default)) == valueDigest(value)
	})
	return rest
}

// valueDigest is the digest of a JSON value: the order of members does not count, and numbers count as they are written. It is
// empty where there is none.
func valueDigest(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return journal.Digest(text)
}
