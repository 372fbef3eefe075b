package messages

import (
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// ownMembers are the members that this face reads, and forwardedMembers those that no provider
// calls tools by (AM-10). A member that stands in neither list is refused.
var (
	ownMembers       = []string{"model", "messages", "tools", "tool_choice", "stream", memberSafeguards}
	forwardedMembers = []string{
		"max_tokens", "system", "stop_sequences", "thinking", "metadata", "output_config", "output_format", "service_tier", "speed", "cache_control",
		"diagnostics", "inference_geo", "temperature", "top_p", "top_k", "context_management", "compaction", "billing_policy",
	}
)

// Members and a beta of coding agents. The beta comes without the member too (AM-03).
const (
	memberSafeguards = "safeguards"
	kindSafeguard    = "dangerous_tool_use"
	betaSafeguards   = "dangerous-tool-use-"
)

// readSafeguards reads the request of an agent for verdicts of the provider on the calls of the reply.
// They are no verdict of this gateway; the provider calls no tool by them.
func (r *run) readSafeguards() error {
	raw := r.request.members.Get(memberSafeguards)
	if raw != nil && raw[0] != 'n' {
		list, ok := rawjson.Elements(raw)
		if !ok {
			return bad(memberSafeguards, "\"safeguards\" must be a list.")
		}
		for i, value := range list {
			o, _ := rawjson.Members(value)
			if kind, _ := rawjson.String(o.Get("type")); kind != kindSafeguard {
				return bad(memberSafeguards+"."+strconv.Itoa(i)+".type", "A safeguard of the type %s is not known here: %q alone is.", parser.Quote(kind), kindSafeguard)
			}
		}
	}
	switch r.Route.Safeguards() {
	case upstream.Refuse:
		if raw != nil && raw[0] != 'n' {
			return bad(memberSafeguards, "\"safeguards\" is not allowed here: it tells the provider of the user's files. Leave it out; in Claude Code, by CLAUDE_CODE_AUTO_MODE_SERVER=0. "+
				"Or the operator allows it, with messages: {safeguards: pass} at the upstream %s.", r.Route.Upstream)
		}
	case upstream.Drop:
		r.request.members = r.request.members.Without(memberSafeguards)
		r.dropBeta(betaSafeguards)
	}
	return nil
}

// dropBeta takes the betas with a prefix out of the header: a provider that does not know one refuses
// the request.
func (r *run) dropBeta(prefix string) {
	var left []string
	for _, value := range r.header[headerBeta] {
		betas := slices.DeleteFunc(strings.Split(value, ","), func(beta string) bool { return strings.HasPrefix(strings.TrimSpace(beta), prefix) })
		if value = strings.Join(betas, ","); value != "" {
			left = append(left, value)
		}
	}
	if r.header.Del(headerBeta); left != nil {
		r.header[headerBeta] = left
	}
}

// checkMembers refuses members that are not to be sent on: unknown ones, and those by which the
// provider calls tools or keeps conversations (AM-20 to AM-22), each unless its switch is on.
func (r *run) checkMembers() error {
	rules := &r.Route.Rules
	for _, m := range r.request.members {
		if slices.Contains(ownMembers, m.Name) || slices.Contains(forwardedMembers, m.Name) || slices.Contains(rules.RequestMembers, m.Name) {
			continue
		}
		if m.Value[0] == 'n' {
			continue // null is absent
		}
		switched, known := switches[m.Name]
		switch {
		case !known:
			return r.refuseMember(m.Name)
		case switched.allowed(&rules.Messages, m.Value):
		default:
			return bad(m.Name, "%q is not allowed here: %s. Leave it out; or the operator allows it, with messages: {%s} at the upstream %s.",
				m.Name, switched.reason, switched.key, r.Route.Upstream)
		}
	}
	return nil
}

func (r *run) refuseMember(name string) error {
	param := name
	if len(param) > upstream.MaxMemberName {
		param = ""
	}
	quoted := parser.Quote(name)
	return bad(param, "The request has a member that is not known to be harmless, and is not sent on: %s. Through such a member a provider could call tools itself, and nobody would judge the calls. "+
		"Leave it out; or the operator allows it, with request_members: [%s] at the upstream %s.", quoted, quoted, r.Route.Upstream)
}

// memberSwitch is what allows a member.
type memberSwitch struct {
	key, reason string
	allowed     func(rules *upstream.MessagesRules, value []byte) bool
}

var switches = map[string]memberSwitch{
	"mcp_servers": {"mcp_servers: [NAME]", "the provider would call tools of remote servers, and nobody would judge the calls", allowsServers},
	threadMember: {"thread: true", "the provider would keep the conversation, and earlier calls would not be seen here",
		func(rules *upstream.MessagesRules, _ []byte) bool { return rules.Thread }},
	"container": {"container: true", "the provider would keep files of code that it runs",
		func(rules *upstream.MessagesRules, _ []byte) bool { return rules.Container }},
	"fallbacks": {"fallbacks: true", "another model than the one that is asked could answer",
		func(rules *upstream.MessagesRules, _ []byte) bool { return rules.Fallbacks }},
	"fallback_credit_token": {"fallbacks: true", "another model than the one that is asked could answer",
		func(rules *upstream.MessagesRules, _ []byte) bool { return rules.Fallbacks }},
}

// allowsServers reports whether each of mcp_servers is allowed by its name (AM-21).
func allowsServers(rules *upstream.MessagesRules, value []byte) bool {
	list, ok := rawjson.Elements(value)
	if !ok {
		return false
	}
	for _, raw := range list {
		o, _ := rawjson.Members(raw)
		name, _ := rawjson.String(o.Get("name"))
		if name == "" || !slices.Contains(rules.MCPServers, name) {
			return false
		}
	}
	return true
}

// checkRules refuses a model whose rules cannot be kept on this wire: a reply is passed on as it
// was received, or not at all (AM-18, AM-74).
func (r *run) checkRules() error {
	rules := &r.Route.Rules
	for fault, found := range map[string]bool{
		"protocol: text": rules.Protocol == upstream.Text, "call_format: content": rules.CallFormat == upstream.AsContent,
		"native_prose: drop": rules.NativeProse == upstream.Drop, "reasoning: drop": rules.Reasoning == upstream.Drop,
	} {
		if found {
			refused := refusal.New(refusal.NotFound, "This model is not served at /v1/messages: its upstream has "+fault+", and replies of this API are passed on as they were received.")
			return &turns.Failure{Refused: refused, Param: "model"}
		}
	}
	return nil
}
