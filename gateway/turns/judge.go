package turns

import (
	"cmp"
	"context"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// division is an answer as the kernel judges it.
type division struct {
	text   *gateway.Input
	beside []gateway.Input // a refusal that the model wrote, what it spoke, and what stands for no text at all
	calls  []gateway.Input
	// stopped says that the provider has ended an answer of nothing before the model did.
	stopped bool
	fault   *refusal.Error // of the answer as a whole
	// refuseCalls is the refusal of any call in the answer, or nil.
	refuseCalls *refusal.Error
}

// judge judges an answer. Its relay, where there is one, has had the kernel read its text so far. denied is the
// refusal of a reply that hooks deny for what is beside its texts, or nil.
func (x *exchange) judge(ctx context.Context, a *Answer, denied *refusal.Error) {
	in := x.divide(a)
	if in.fault == nil {
		in.fault = denied
	}
	if !a.fedInOrder() {
		in.fault = refusal.From(refusal.Parse, errMisread)
	}
	a.hasText, a.texts = in.text != nil, len(in.beside)
	if a.hasText {
		a.texts++
	}
	w := &a.relay
	beside := append(in.beside, in.calls...)
	refused := in.fault != nil || in.refuseCalls != nil && len(in.calls) > 0
	// Text that was sent already is a text. Other text may be a call where the model writes calls as text, which
	// nothing may accompany.
	if w.stream != nil && a.hasText && !refused && (w.sent || len(in.beside) == 0 || !x.CallsAreText()) {
		if behind := in.text.Completion[w.fed:]; len(behind) > 0 { // the first call
			a.rest = w.stream.Write(behind)
		}
		a.rest = append(w.leading, a.rest...)
		a.decision = w.stream.Close(ctx, in.text.Truncated, beside...)
		w.stream = nil
		a.takeHooked(true)
		return
	}
	w.stream = nil // the text is judged here, whole
	if a.hasText {
		beside = append([]gateway.Input{*in.text}, beside...)
	}
	constraints := x.AnswerConstraints(len(in.calls) > 0, in.stopped)
	constraints.RefuseAll = in.fault
	if in.refuseCalls != nil {
		constraints.RefuseCall = in.refuseCalls
	}
	a.decision = x.Admission.WithConstraints(constraints).Judge(ctx, x.Mode, beside...)
	a.takeHooked(false)
}

// fedInOrder reports whether what the kernel has read of a stream is the beginning of the answer's text.
func (a *Answer) fedInOrder() bool {
	whole := true // so far
	for _, p := range a.Parts {
		if p.Kind != Text {
			continue
		}
		if p.fed > 0 && !whole {
			return false
		}
		whole = whole && p.fed == len(p.Text)
	}
	return true
}

// divide divides an answer into what is judged.
func (x *exchange) divide(a *Answer) division {
	var in division
	rules, native, calls := &x.Route.Rules, !x.CallsAreText(), a.calls()
	cut := a.End == Open || a.End == Cut
	called := native && len(calls) > 0
	a.dropped = called && rules.NativeProse == upstream.Drop
	refused := a.text(Refusal)
	if len(refused) > 0 {
		in.beside = append(in.beside, gateway.Input{Completion: refused, TextOnly: true, Truncated: cut})
		in.refuseCalls = refusal.New(refusal.MixedOutput, "The answer refuses and calls a tool at once. Do one of them.")
	}
	spoken := a.part(Speech)
	if spoken != nil && (a.dropped || IsBlank(spoken.Text)) {
		spoken = nil
	}
	if spoken != nil {
		if !native && in.refuseCalls == nil {
			in.refuseCalls = refusal.New(refusal.MixedOutput,
				"The answer speaks and calls a tool at once. Send the call alone, or answer without a call.")
		}
		in.beside = append(in.beside, gateway.Input{Completion: spoken.Text, TextOnly: true, Truncated: cut})
	}
	// Beside something else, no text is none; alone, it is an answer of nothing, unless it says why there is none.
	text := a.text(Text)
	switch alone := len(in.beside) == 0 && !called; {
	case a.dropped:
	case !IsBlank(text) || alone && (a.needsText() || x.output != nil && !a.Partial):
		in.text = &gateway.Input{Completion: text, TextOnly: native, Truncated: cut}
		if x.output != nil && !called {
			in.text.Output, in.text.Partial = x.output, a.Partial || len(refused) > 0
			in.refuseCalls = cmp.Or(in.refuseCalls, x.unlikeOutput(text))
			if !in.text.Partial && a.isManyJSON() {
				in.fault = refusal.New(refusal.MixedOutput,
					"The answer has JSON and other text, where one JSON value is asked for. Send it alone.")
			}
		}
	case alone:
		in.beside = append(in.beside, gateway.Input{Completion: []byte(NoText), TextOnly: true, Truncated: cut})
		a.blank, in.stopped = true, a.End == Cut || a.End == Paused
	default:
		a.blank = called || x.spec.Ordered // blank text is shown as it came
	}
	if called && a.Withheld != "" {
		in.fault = cmp.Or(in.fault, refusal.New(refusal.TruncatedOutput, // whatever is left of the arguments
			"The answer ended with "+a.Withheld+": a filter of the model's provider has ended it, or the model refuses. None of its calls was executed."))
	}
	if called && in.refuseCalls == nil && a.RefuseCalls != nil {
		in.refuseCalls, cut = a.RefuseCalls, false // the calls are refused by this reason
	}
	if native {
		for _, p := range calls {
			in.calls = append(in.calls, gateway.Input{Native: x.nativeCall(p), Truncated: cut || p.Cut})
		}
	}
	in.fault = cmp.Or(in.fault, x.misfit(a, len(calls), in.text != nil || spoken != nil))
	return in
}

// unlikeOutput returns the refusal of a text that is not by the schema of the answer, where it would be the answer also if
// it is a call: an application that named no tools gets the text.
func (x *exchange) unlikeOutput(text []byte) *refusal.Error {
	if !x.CallsAreText() || x.Mode != gateway.ModeEnforce || x.Offer.wires != nil {
		return nil
	}
	o := x.options.Executor.Kernel.ParserOptions()
	o.TextOnly, o.NativeText = true, parser.AllowAny
	read := parser.ParseStructured(text, false, false, o)
	if read.JSON == nil {
		return nil // no call either
	}
	return refusal.From(refusal.Schema, violations.OfOutput(x.output, read.JSON, read.JSONOffset))
}

// misfit returns the refusal of an answer whose parts do not fit together.
func (x *exchange) misfit(a *Answer, calls int, text bool) *refusal.Error {
	for _, p := range a.Parts {
		if p.holdsCall() {
			return refusal.New(refusal.ForeignCallSyntax,
				"The summary of the conversation has the syntax of a call in it. Summarize without it.")
		}
		if p.Kind == Stray || p.Kind == Call && x.CallsAreText() {
			return refusal.New(refusal.ForeignCallSyntax,
				"The answer calls a tool by "+p.Called+", which is another syntax for tool calls. "+x.howToCall())
		}
	}
	rules := &x.Route.Rules
	switch {
	case calls == 0:
	case a.Fault != nil:
		return a.Fault
	case !a.tellsCallsApart():
		return refusal.New(refusal.UpstreamUnavailable,
			"The model's answer has a call without an id of its own; none of its calls was used.")
	case text && (rules.NativeProse == upstream.Refuse || rules.CallFormat == upstream.AsContent):
		return refusal.New(refusal.MixedOutput, "The answer has text beside a call. Send the call alone, or answer in text without a call.")
	case calls > 1 && (rules.Parallel == upstream.Refuse || rules.CallFormat == upstream.AsContent || x.Choice.Single):
		return refusal.New(refusal.MultipleCalls,
			"More than one call was sent in one answer. Send one call, and the next one after its result.")
	}
	return nil
}

// tellsCallsApart reports whether each call has an id of its own, in which no call could be found: results are matched by it.
func (a *Answer) tellsCallsApart() bool {
	ids := map[string]bool{}
	for _, p := range a.calls() {
		if id := p.Call.ID; id == "" || ids[id] || !rawjson.IsProse([]byte(id)) {
			return false
		}
		ids[p.Call.ID] = true
	}
	return true
}

// holdsCall reports whether a part is a summary that a reader could take for a call: it comes back as the beginning of
// the conversation.
func (p *Part) holdsCall() bool { return p.Kind == Summary && !rawjson.HoldsNoCall(p.Raw) }

// nativeCall is a call of the model under the registry's name.
func (x *exchange) nativeCall(p *Part) *gateway.NativeCall {
	n := &gateway.NativeCall{ID: p.Call.ID, Arguments: p.Call.Arguments}
	n.Name, n.Wire = x.dialogue.Name(p)
	if IsBlank(n.Arguments) {
		n.Arguments = []byte("{}") // what providers send for a tool without parameters
	}
	return n
}

// passedText reports whether the text of an answer passed as one.
func (a *Answer) passedText() bool {
	return a.hasText && a.decision.Reports[0].Verdict == gateway.VerdictText
}

// show is what of an answer that passed the application gets; of a stream, what it has not got yet.
func (x *exchange) show(a *Answer) (shown []Shown) {
	calls, asText := x.showCalls(a)
	withText := asText == nil && (a.passedText() || a.blank)
	var rest []byte // of the text of a stream
	if x.streams && a.passedText() {
		rest = append(a.rest[:len(a.rest):len(a.rest)], a.decision.Reports[0].Text...)
	}
	spoken := a.part(Speech)
	for _, p := range a.Parts {
		switch {
		case p.ended, x.hides(p):
		case p.Kind == Thought && (x.spec.Ordered || !x.streams || a.buffered), p.Kind == Hosted, p.Kind == Summary, p.Kind == Unknown:
			shown = append(shown, Shown{Part: p, Begun: p.begun})
		case p.Kind == Call && a.questions[p] != nil:
			shown = append(shown, Shown{Part: p, Question: a.questions[p]})
		case p.Kind == Call && len(calls) > 0:
			shown, calls = append(shown, calls[0]), calls[1:]
		case p.Kind == Text && withText:
			text := p.Text
			if x.streams && a.passedText() && !x.spec.Ordered {
				text, rest = rest, nil
			}
			shown = append(shown, Shown{Part: p, Text: text[p.shown:], Begun: p.begun})
		case p.Kind == Refusal:
			shown = append(shown, Shown{Part: p, Text: p.Text})
		case p == spoken && !a.dropped && (withText || !IsBlank(p.Text)):
			shown = append(shown, Shown{Part: p, Text: p.Text})
		}
	}
	if asText != nil {
		a.End = Called // though it shows none
		shown = append(shown, Shown{Part: &Part{Row: x.spec.row(Text)}, Text: asText})
	}
	return append(shown, calls...)
}

// showCalls is the calls of an answer that passed, or the text that they are shown as.
func (x *exchange) showCalls(a *Answer) (shown []Shown, asText []byte) {
	native := a.calls()
	for i, report := range Passed(a.decision) {
		wire, offered := x.Offer.Wire(report.Call.Tool)
		asContent := x.Route.Rules.CallFormat == upstream.AsContent
		switch {
		case !x.CallsAreText() && asContent:
			return nil, x.CallText(report.Call.Tool, report.Call.Arguments)
		case !x.CallsAreText():
			shown = append(shown, Shown{Part: native[i], Arguments: report.Call.Arguments})
		case !offered || asContent: // an application that named no tools reads the call language itself
			return nil, a.text(Text)
		default:
			call := &Part{Row: x.spec.row(Call), Call: CallPart{ID: report.CallID, Name: wire}}
			shown = append(shown, Shown{Part: call, Arguments: report.Call.Arguments})
		}
	}
	return shown, nil
}
