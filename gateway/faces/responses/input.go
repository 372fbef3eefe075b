package responses

import (
	"bytes"
	"cmp"
	"context"
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
)

// maxItems is how many items a conversation may begin with.
const maxItems = 1 << 14

// readInput reads the input: a text, or items. Each call must be answered once, by its call_id
// (RS-17).
func (d *dialogue) readInput(ctx context.Context) error {
	if d.previous != "" {
		d.Admission.BringsResult("", nil) // what the provider keeps is not seen
	}
	raw := d.members.Get("input")
	if raw == nil && d.members.Get("prompt") != nil {
		return nil // the prompt may hold it
	}
	if rawjson.IsString(raw) {
		d.conversation.text = raw
		return nil
	}
	list, ok := rawjson.Elements(raw)
	if !ok {
		return bad("input", "\"input\" must be a text, or a list of items.")
	}
	h := history{run: d, open: map[string]earlierCall{}, used: map[string]string{}, answered: map[string]earlierCall{},
		unseen: d.previous != ""}
	for i, value := range list {
		if i == maxItems {
			return bad("input", "\"input\" may have at most %d items.", maxItems)
		}
		param := "input." + strconv.Itoa(i)
		o, ok := rawjson.Members(value)
		if !ok {
			return bad(param, "An item must be an object.")
		}
		item, err := h.readItem(ctx, value, o, param)
		if err == nil {
			item, err = h.hookEarlier(ctx, item)
		}
		if tools, ok := d.inputTools[i]; ok {
			item = conversationItem{object: o, tools: tools}
		}
		if err != nil {
			return err
		}
		if kind, _ := rawjson.String(o.Get("type")); isOfModel(kind, o) {
			d.lastOfModel = i
		}
		d.conversation.items = append(d.conversation.items, item)
	}
	for _, call := range h.open {
		if call.kind == typeRequest {
			return bad("input", "The requests for approval are not all answered: each must have one item of the type %s, with its id.",
				typeResponse)
		}
		if !call.async {
			return bad("input", "The calls are not all answered: each must have one item with its result, with its call_id.")
		}
	}
	return nil
}

// readItem reads an item, and returns it as the model gets it; tools within it are written later.
func (h *history) readItem(ctx context.Context, raw []byte, o rawjson.Object, param string) (conversationItem, error) {
	as := conversationItem{raw: raw}
	kind, ok := rawjson.String(o.Get("type"))
	if !ok && o.Get("type") != nil {
		return as, bad(param+".type", "The type of an item must be a string.")
	}
	rules := &h.run.Route.Rules.Responses
	switch {
	case kind == "", kind == "message":
		return as, readMessage(o, param)
	case kind == "shell_call" && isContainer(o):
		return as, h.checkHosted(kind, param)
	case rows[kind] != nil && rows[kind].output != "":
		return as, h.readCall(kind, o, param)
	case callOf(kind) != "":
		if _, ours := h.open[answered(o)]; !ours && kind == "shell_call_output" && h.checkHosted(kind, param) == nil {
			return as, nil // of a container of the provider
		}
		return h.readResult(ctx, kind, raw, o, param)
	case kind == "reasoning", kind == "configuration_update", kind == "additional_tools":
		return as, nil
	case kind == "item_reference":
		id, _ := rawjson.String(o.Get("id"))
		if _, own := h.run.ledger.Get(owner{h.run.Admission.Principal(), h.run.Route.Upstream, id}); !own ||
			rules.State != upstream.BindState {
			return as, bad(param,
				"An item that the provider keeps is not taken here: send the item itself, with \"store\": false. The operator "+
					"can allow items of this caller's own responses by responses.state of the upstream.")
		}
		h.unseen = true
		h.run.Admission.BringsResult("", nil)
		return as, nil
	case kind == typeRequest && h.run.asksAt != "":
		return h.readRequest(o, param)
	case kind == typeResponse && h.run.asksAt != "":
		return h.readAnswer(o, param)
	case kind == typeRequest, kind == typeResponse:
		return as, bad(param, "Calls at the provider are approved by the policy here, not by the application.")
	}
	return as, h.checkHosted(kind, param)
}

func isContainer(o rawjson.Object) bool {
	environment, _ := rawjson.Members(o.Get("environment"))
	place, _ := rawjson.String(environment.Get("type"))
	return place == "container_reference"
}

// checkHosted checks an item of the provider's own, or of an unknown type.
func (h *history) checkHosted(kind, param string) error {
	rules := &h.run.Route.Rules
	of := rows[kind]
	if kind == rowContainerCall.Type {
		of = rowContainerCall
	}
	cure := ""
	if of != nil && of.Kind == turns.Hosted {
		found, key := of.Allowed(rules, &turns.Part{Row: &of.Row})
		if found == "" {
			h.run.Admission.BringsResult("", nil)
			return nil
		}
		cure = key
	}
	switch {
	case isDisguisedType(kind):
		return bad(param+".type", "An item of the type %s is not taken: it is a known type in another spelling. Write the known one.",
			parser.Quote(kind))
	case rules.Responses.UnknownItems == upstream.Pass:
		h.run.Admission.BringsResult("", nil)
		return nil
	}
	return bad(param+".type", "An item of the type %s is not taken here. The operator can allow it, with %s at the upstream %s.",
		parser.Quote(kind), cmp.Or(cure, spec.UnknownKey), h.run.Route.Upstream)
}

// readMessage reads a message: of a known role, with content.
func readMessage(o rawjson.Object, param string) error {
	switch role, _ := rawjson.String(o.Get("role")); role {
	case "user", "system", "developer", "assistant":
	default:
		return bad(param+".role", "The role must be user, system, developer or assistant.")
	}
	content := o.Get("content")
	if rawjson.IsString(content) {
		return nil
	}
	if _, ok := rawjson.Elements(content); !ok {
		return bad(param+".content", "The content must be a text, or a list of parts.")
	}
	return nil
}

// answered is the id of the call that a result names. Results of local shell calls may name it
// as their id.
func answered(o rawjson.Object) string {
	id, _ := rawjson.String(o.Get("call_id"))
	if kind, _ := rawjson.String(o.Get("type")); id == "" && kind == "local_shell_call_output" {
		id, _ = rawjson.String(o.Get("id"))
	}
	return id
}

// readCall reads a call of an earlier turn.
func (h *history) readCall(kind string, o rawjson.Object, param string) error {
	id, _ := rawjson.String(o.Get("call_id"))
	if _, twice := h.open[id]; id == "" || twice {
		return bad(param+".call_id", "A call must have a call_id, and each open one its own.")
	}
	name, _ := rawjson.String(o.Get("name"))
	namespace, _ := rawjson.String(o.Get("namespace"))
	arguments := ""
	switch kind {
	case "function_call":
		var ok bool
		arguments, ok = rawjson.String(o.Get("arguments"))
		if arguments == "" || arguments == "null" { // as some clients write none
			arguments = "{}"
		}
		read := []byte(arguments)
		if o.Get("arguments") == nil && o.Get("encrypted_function_args") != nil {
			return bad(param+".encrypted_function_args", "Arguments that are encrypted cannot be judged, and no setting allows them. Use a model and a client that send \"arguments\".")
		}
		if !ok || !rawjson.Readable(read) || read[parser.SkipSpace(read, 0)] != '{' {
			return bad(param+".arguments", "The arguments of a call must be a string that holds one strict JSON object.")
		}
	case "custom_tool_call":
		if !rawjson.IsString(o.Get("input")) {
			return bad(param+".input", "The input of a custom tool must be a string.")
		}
	default:
		name = rows[kind].tool
	}
	if name == "" {
		return bad(param+".name", "A call must have the name of a tool.")
	}
	h.used[id] = kind
	async := h.run.Route.Rules.Responses.Async && string(o.Get("async")) == "true"
	h.open[id] = earlierCall{kind: kind, name: h.run.RegistryName(h.run.wireOf(namespace, name)), arguments: arguments, async: async}
	return nil
}

// readResult reads the result of a call.
func (h *history) readResult(ctx context.Context, kind string, raw []byte, o rawjson.Object, param string) (conversationItem, error) {
	as := conversationItem{raw: raw}
	id := answered(o)
	call, open := h.open[id]
	switch {
	case id == "":
		return as, bad(param+".call_id", "A result must say which call it answers, by its call_id.")
	case !open && kind == "custom_tool_call_output" && h.used[id] == callOf(kind):
		call = h.answered[id] // a program of the client may say more than once what it has done
	case !open && (!h.unseen || h.used[id] != ""):
		return as, bad(param+".call_id", "This item answers no call before it, or one that is answered already.")
	case open && call.kind != callOf(kind):
		return as, bad(param+".type", "This item answers a call of another type.")
	}
	h.used[id], h.answered[id] = callOf(kind), call
	delete(h.open, id)
	h.run.Admission.BringsResult(call.name, []byte(call.arguments))
	if kind != "function_call_output" && kind != "custom_tool_call_output" {
		return h.hookOutput(ctx, as, call.name, o) // objects of a form of their own, without a place for another
	}
	if rawjson.IsNull(o.Get("output")) { // a tool that returns nothing
		o = o.Set("output", rawjson.Quote(""))
		as.raw = o.Bytes()
	}
	if !isResult(o.Get("output")) {
		return as, bad(param+".output", "The output of a call must be a text, or a list of parts.")
	}
	return h.hookOutput(ctx, as, call.name, o)
}

// hookOutput is an item whose output hooks have seen.
func (h *history) hookOutput(ctx context.Context, as conversationItem, tool string, o rawjson.Object) (conversationItem, error) {
	output := o.Get("output")
	if output == nil {
		return as, nil
	}
	left, err := h.run.BroughtResult(ctx, tool, output)
	if err == nil && !bytes.Equal(left, output) {
		as.raw = o.Set("output", left).Bytes()
	}
	return as, err
}

// isResult reports whether an output is a text, or a list of parts that have types.
func isResult(raw []byte) bool {
	if rawjson.IsString(raw) {
		return true
	}
	list, ok := rawjson.Elements(raw)
	if !ok {
		return false
	}
	for _, value := range list {
		part, isObject := rawjson.Members(value)
		if kind, _ := rawjson.String(part.Get("type")); !isObject || kind == "" {
			return false
		}
	}
	return true
}

// readInputTools reads the tools of items, which extend those of the request in order (RS-13).
func (d *dialogue) readInputTools() error {
	list, ok := rawjson.Elements(d.members.Get("input"))
	if !ok {
		return nil
	}
	d.inInput, d.inputTools = true, map[int][]definition{}
	for i, value := range list {
		o, _ := rawjson.Members(value)
		param := "input." + strconv.Itoa(i)
		switch kind, _ := rawjson.String(o.Get("type")); {
		case kind == "additional_tools" && !d.Route.Rules.Responses.AdditionalTools:
			return bad(param,
				"Tools in \"input\" are not taken here: a program of the client may call them where nobody judges the calls. Use a model that "+
					"the client gives its tools one by one (Codex: gpt-5.5, or a model_catalog_json whose tool_mode is null). Or the operator "+
					"allows them, with responses: {additional_tools: true} at the upstream %s.", d.Route.Upstream)
		case kind == "additional_tools", kind == "tool_search_output":
		default:
			continue
		}
		tools, err := d.readTools(o.Get("tools"), param+".tools")
		if err != nil {
			return err
		}
		d.inputTools[i], d.named = tools, true
	}
	return nil
}

// isOfModel reports whether an item of the input was made by a model: the conversation has gone on
// with it. Items by which the caller is asked are not counted: a client may answer one by one.
func isOfModel(kind string, o rawjson.Object) bool {
	switch kind {
	case "", "message":
		role, _ := rawjson.String(o.Get("role"))
		return role == "assistant"
	case typeRequest, typeResponse, "configuration_update", "additional_tools", "compaction_trigger":
		return false
	}
	return callOf(kind) == ""
}
