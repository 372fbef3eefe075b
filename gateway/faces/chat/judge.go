package chat

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/chat"
)

// turn is one completion of the model, judged.
type turn struct {
	*chat.Completion
	choices []judgedChoice
}

// judgedChoice is one choice, with the decision on it.
type judgedChoice struct {
	*chat.Choice
	decision *gateway.Decision
	// text means that the first report is on the content, and beside is the number of
	// reports before those of native calls.
	text       bool
	textInputs int
	blank      bool // the content is no text, and was not judged: it is shown as it came
	sent       bool // some of the content was sent
	buffered   bool // nothing of a stream was sent before it was judged
	audio      *audio
}

// passed are the reports of calls that passed.
func (j *judgedChoice) passed() []gateway.Report { return turns.Passed(j.decision) }

// released reports whether the content is text that passed.
func (j *judgedChoice) released() bool {
	return j.text && j.decision.Reports[0].Verdict == gateway.VerdictText
}

// choiceParts are the parts of a choice that are judged.
type choiceParts struct {
	content   *gateway.Input
	extraText []gateway.Input // a refusal that the model wrote, and what it spoke
	calls     []gateway.Input
	blank     bool           // the content is at most white space, and may be shown
	stopped   bool           // the provider has ended an answer of nothing before the model did
	fault     *refusal.Error // of the answer as a whole
	audio     *audio
	// refuseCalls is the refusal of any call in the answer, or nil.
	refuseCalls *refusal.Error
}

func (a *choiceParts) inputs() []gateway.Input {
	var all []gateway.Input
	if a.content != nil {
		all = append(all, *a.content)
	}
	return append(all, a.extraInputs()...)
}

// extraInputs is all but the content.
func (a *choiceParts) extraInputs() []gateway.Input { return slices.Concat(a.extraText, a.calls) }

// judge judges a choice. A relay, where there is one, has judged its content so
// far. denied is the refusal of an answer that hooks deny for what is beside its texts, or nil.
func (r *run) judge(ctx context.Context, c *chat.Choice, seen *relay, denied *refusal.Error) judgedChoice {
	a := r.readChoice(c, seen != nil && seen.stream != nil)
	if a.fault == nil {
		a.fault = denied
	}
	j := judgedChoice{Choice: c, text: a.content != nil, textInputs: len(a.extraText), blank: a.blank, audio: a.audio}
	if j.text {
		j.textInputs++
	}
	if seen != nil {
		j.sent = seen.sent
		// Content that was sent already is a text. Other content may be a call, which
		// nothing may accompany.
		if seen.stream != nil && a.fault == nil && (len(a.extraText) == 0 || seen.sent && (a.refuseCalls == nil || len(a.calls) == 0)) {
			j.decision = seen.close(ctx, a.content.Truncated, a.extraInputs()...)
			j.takeHooked(true)
			return j
		}
		if seen.stream != nil && a.content != nil {
			a.content.Completion = []byte(*c.Message.Content)
		}
		seen.stream = nil // the content is judged here, whole
	}
	constraints := r.AnswerConstraints(len(a.calls) > 0, a.stopped)
	constraints.RefuseAll = a.fault
	if a.refuseCalls != nil {
		constraints.RefuseCall = a.refuseCalls
	}
	j.decision = r.Admission.WithConstraints(constraints).Judge(ctx, r.Mode, a.inputs()...)
	j.takeHooked(false)
	return j
}

// readChoice divides a choice into the parts that the kernel judges. The text of content that a
// relay has is left out.
func (r *run) readChoice(c *chat.Choice, relayed bool) choiceParts {
	m := &c.Message
	cut := c.FinishReason == "" || !isOwnEnd(c.FinishReason) // what has no end may be cut
	native := r.Route.Rules.Protocol != upstream.Text
	content := ""
	if m.Content != nil {
		content = *m.Content
	}
	called := native && len(m.ToolCalls) > 0
	dropped := called && r.Route.Rules.NativeProse == upstream.Drop
	var a choiceParts
	if !dropped {
		a.audio = r.readAudio(m)
	}
	hasTranscript := a.audio.hasTranscript()
	if hasTranscript && !native {
		a.refuseCalls = refusal.New(refusal.MixedOutput, "The answer speaks and calls a tool at once. Send the call alone, or answer without a call.")
	}
	refused := m.Refusal != nil && *m.Refusal != ""
	if refused {
		a.extraText = append(a.extraText, gateway.Input{Completion: []byte(*m.Refusal), TextOnly: true, Truncated: cut})
		a.refuseCalls = refusal.New(refusal.MixedOutput, "The answer refuses and calls a tool at once. Do one of them.")
	}
	if hasTranscript {
		a.extraText = append(a.extraText, gateway.Input{Completion: []byte(a.audio.transcript), TextOnly: true, Truncated: cut})
	}
	// Beside something else, no content is no text; alone, it is an answer of
	// nothing, unless it says why there is none.
	switch alone := !refused && !hasTranscript && !called; {
	case dropped:
	case !isBlank(content) || alone && !explainsNothing(c):
		a.content = &gateway.Input{TextOnly: native, Truncated: cut}
		if !relayed {
			a.content.Completion = []byte(content)
		}
	case alone:
		a.extraText = append(a.extraText, gateway.Input{Completion: []byte(turns.NoText), TextOnly: true, Truncated: cut})
		a.blank, a.stopped = true, !isOwnEnd(c.FinishReason)
	default:
		a.blank = called && r.Route.Rules.NativeProse == upstream.Pass
	}
	if called && cut && a.refuseCalls == nil && c.FinishReason != "" && !parser.Truncates(c.FinishReason) {
		a.refuseCalls = refusal.New(refusal.TruncatedOutput, "The answer ended with the finish_reason "+c.FinishReason+", which does not say that its calls are complete; none of them was executed. Send the whole call again.")
		cut = false // the calls are refused by this reason
	}
	if native {
		for i := range m.ToolCalls {
			if call := &m.ToolCalls[i]; call.ID == "" { // the application and the model refer to it
				call.ID = "call_" + rand.Text()
			}
			a.calls = append(a.calls, gateway.Input{Native: r.nativeCall(&m.ToolCalls[i]), Truncated: cut})
		}
	}
	a.fault = r.malformed(m, &a)
	return a
}

// explainsNothing reports whether a choice without a text says why it has none: the provider has ended
// it, or the model has thought, or drawn, and has not stopped for a call.
func explainsNothing(c *chat.Choice) bool {
	if !isOwnEnd(c.FinishReason) {
		return true
	}
	return strings.EqualFold(c.FinishReason, "stop") && slices.ContainsFunc(c.Message.Extra, func(m chat.Member) bool {
		isEmpty := slices.Contains([]string{"null", `""`, "[]", "{}"}, string(m.Value))
		return !isEmpty && (slices.Contains(reasoningMembers, m.Name) || m.Name == "images")
	})
}

// isOwnEnd reports whether a finish_reason says that the model ended the answer itself. Providers have
// many words for why they did: length, MAX_TOKENS, SAFETY, MALFORMED_FUNCTION_CALL, abort. The calls of an
// answer that ended for such a reason, or for one that is not known, may be cut.
func isOwnEnd(reason string) bool {
	return reason == "" || slices.Contains(ownEnds, ascii.Folded(reason))
}

// ownEnds are the words for the end of an answer that is complete, see ascii.Folded.
var ownEnds = []string{
	"stop", "toolcall", "toolcalls", "tooluse", "functioncall", "functioncalls", "eos", "eostoken", "endturn", "endofturn", "stopsequence",
	"stoptoken", "stopstring", "complete", "completed", "finished",
}

// malformed returns the refusal of an answer whose parts do not fit together.
func (r *run) malformed(m *chat.Message, a *choiceParts) *refusal.Error {
	rules := &r.Route.Rules
	calls := len(m.ToolCalls)
	foreign := func(found string) *refusal.Error {
		return refusal.New(refusal.ForeignCallSyntax, "The answer calls a tool by "+found+", which is another syntax for tool calls. "+r.howToCall())
	}
	if m.FunctionCall {
		return foreign("the legacy member function_call")
	}
	if calls == 0 {
		return nil
	}
	if rules.Protocol == upstream.Text {
		return foreign("the member tool_calls")
	}
	ids := map[string]bool{}
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		if call.Type != "" && call.Type != "function" {
			return foreign("a type that is not function")
		}
		if !ascii.IsPlainID(call.ID) || ids[call.ID] {
			return refusal.New(refusal.UpstreamUnavailable, "The model's answer has a call whose id is not plain, or two calls with one id; none of its calls was used. If this happens often, the operator can set `protocol: text` for the model: it then writes its calls as text.")
		}
		ids[call.ID] = true
	}
	text := a.content != nil || a.audio.hasTranscript()
	switch {
	case text && (rules.NativeProse == upstream.Refuse || rules.CallFormat == upstream.AsContent):
		return refusal.New(refusal.MixedOutput, "The answer has text beside a call. Send the call alone, or answer in text without a call.")
	case calls > 1 && (rules.Parallel == upstream.Refuse || rules.CallFormat == upstream.AsContent || r.request.singleCall):
		return refusal.New(refusal.MultipleCalls, "More than one call was sent in one answer. Send one call, and the next one after its result.")
	}
	return nil
}

// howToCall tells the model how to make a call.
func (r *run) howToCall() string {
	if r.Route.Rules.Protocol == upstream.Text {
		return "Send the call alone, as " + r.callStart() + `"name":"…","arguments":{…}}}.`
	}
	return "Call one of the functions that you were given."
}

// nativeCall is a call of the model under the registry's name.
func (r *run) nativeCall(call *chat.ToolCall) *gateway.NativeCall {
	n := &gateway.NativeCall{Name: r.RegistryName(call.Name), Wire: call.Name, Arguments: call.Arguments}
	if isBlank(string(n.Arguments)) {
		n.Arguments = []byte("{}") // what providers send for a tool without parameters
	}
	return n
}

// isBlank reports whether a text is nothing but JSON's white space.
func isBlank(s string) bool { return strings.Trim(s, " \t\r\n") == "" }

// sent reports whether the application was sent some of the turn's text.
func (t *turn) sent() bool {
	for i := range t.choices {
		if t.choices[i].sent {
			return true
		}
	}
	return false
}
