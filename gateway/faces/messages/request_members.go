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
		"max_tokens", "system", "stop_sequences", "thinking", "metadata", "output_config", "output_format", "service_tier", "speed",
		"cache_control",
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
func (d *dialogue) readSafeguards() error {
	raw := d.members.Get(memberSafeguards)
	if raw != nil && raw[0] != 'n' {
		list, ok := rawjson.Elements(raw)
		if !ok {
			return bad(memberSafeguards, "\"safeguards\" must be a list.")
		}
		for i, value := range list {
			o, _ := rawjson.Members(value)
			if kind, _ := rawjson.String(o.Get("type")); kind != kindSafeguard {
				return bad(memberSafeguards+"."+strconv.Itoa(i)+".type", "A safeguard of the type %s is not known here; expected %q.",
					parser.Quote(kind), kindSafeguard)
			}
		}
	}
	switch d.Route.Safeguards() {
	case upstream.Refuse:
		if raw != nil && raw[0] != 'n' {
			return bad(memberSafeguards, "\"safeguards\" is not allowed here: it tells the provider of the user's files. Leave it out; in Claude Code, by CLAUDE_CODE_AUTO_MODE_SERVER=0. "+
				"Or the operator allows it, with messages: {safeguards: pass} at the upstream %s.", d.Route.Upstream)
		}
	case upstream.Drop:
		d.members = d.members.Without(memberSafeguards)
		d.dropBeta(betaSafeguards)
	}
	return nil
}

// dropBeta takes the betas with a prefix out of the header: a provider that does not know one refuses
// the request.
func (d *dialogue) dropBeta(prefix string) {
	var left []string
	for _, value := range d.header[headerBeta] {
		betas := slices.DeleteFunc(strings.Split(value, ","),
			func(beta string) bool { return strings.HasPrefix(strings.TrimSpace(beta), prefix) })
		if value = strings.Join(betas, ","); value != "" {
			left = append(left, value)
		}
	}
	if d.header.Del(headerBeta); left != nil {
		d.header[headerBeta] = left
	}
}

// switches are the members by which the provider calls tools or keeps conversations (AM-20 to AM-22).
var switches = map[string]turns.Switch{
	"mcp_servers": {Key: "messages: {mcp_servers: [NAME]}",
		Reason:  "the provider would call tools of remote servers, and nobody would judge the calls",
		Allowed: allowsServers},
	threadMember: {Key: "messages: {thread: true}",
		Reason:  "the provider would keep the conversation, and earlier calls would not be seen here",
		Allowed: func(rules *upstream.Rules, _ []byte) bool { return rules.Messages.Thread }},
	"container": {Key: "messages: {container: true}", Reason: "the provider would keep files of code that it runs",
		Allowed: func(rules *upstream.Rules, _ []byte) bool { return rules.Messages.Container }},
	"fallbacks": {Key: "messages: {fallbacks: true}", Reason: "another model than the one that is asked could answer",
		Allowed: func(rules *upstream.Rules, _ []byte) bool { return rules.Messages.Fallbacks }},
	"fallback_credit_token": {Key: "messages: {fallbacks: true}", Reason: "another model than the one that is asked could answer",
		Allowed: func(rules *upstream.Rules, _ []byte) bool { return rules.Messages.Fallbacks }},
}

// allowsServers reports whether each of mcp_servers is allowed by its name (AM-21).
func allowsServers(rules *upstream.Rules, value []byte) bool {
	list, ok := rawjson.Elements(value)
	if !ok {
		return false
	}
	for _, raw := range list {
		o, _ := rawjson.Members(raw)
		name, _ := rawjson.String(o.Get("name"))
		if name == "" || !slices.Contains(rules.Messages.MCPServers, name) {
			return false
		}
	}
	return true
}

// checkRules refuses a model whose rules cannot be kept on this wire: a reply is passed on as it
// was received, or not at all (AM-18, AM-74).
func (d *dialogue) checkRules() error {
	rules := &d.Route.Rules
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
