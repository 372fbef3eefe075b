package turns

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// exchange is a run of a dialogue over a wire: what is read, judged and written between the two.
type exchange struct {
	*Run
	wire     Wire
	spec     *Spec
	dialogue Dialogue
	writer   Writer
	streams  bool        // what passes is written while it comes
	events   EventWriter // of a stream; one that a face leads itself sends nothing
	// follower is the observer of a face that leads the dialogue: it is shown each turn apart.
	follower Observer

	// registered is the admission without the tools that the request brings.
	registered *gateway.Admission
	asked      asked
	last       *Reply // of the model
	judged     Turn   // the same, for the loop
	// Of the stream that is read: whether nothing is shown before the verdict, whether hooks see its thoughts, and
	// whether nothing was shown of its last event, or what comes behind it is held.
	whole, hooked, quiet bool
}

// Serve answers requests over a wire.
func Serve(wire Wire, o Options) func(*gin.Context, server.Request) {
	o.heartbeats = deadline.NewAlarms()
	return func(c *gin.Context, received server.Request) {
		x, err := newExchange(c, wire, o, received)
		if err != nil {
			FailureOf(err).answer(c, wire, nil)
			return
		}
		if x.streams = x.dialogue.Streams(); x.streams {
			x.events = x.NewEventWriter(c)
			defer x.events.Release()
			x.KeepAlive = func(note string) {
				x.events.Buffer = x.writer.Alive(x.events.Buffer, note)
				x.events.Send()
			}
			if x.Mode == gateway.ModeCall {
				x.Observer = x
			}
		}
		x.answer(c)
	}
}

// answer requests turns from the model, and answers the application.
func (x *exchange) answer(c *gin.Context) {
	switch failed := x.Turns(c.Request.Context(), x); {
	case failed == nil:
		x.finishTurn(c)
	case failed.Message != "":
		failed.Log(c)
		x.finishMessage(c, failed.Message)
	default:
		x.fail(c, failed)
	}
}

// ServeCount answers requests for the number of tokens of a request, after the same checks.
func ServeCount(wire Wire, o Options) func(*gin.Context, server.Request) {
	return func(c *gin.Context, received server.Request) {
		x, err := newExchange(c, wire, o, received)
		if err != nil {
			FailureOf(err).answer(c, wire, nil)
			return
		}
		if err = x.count(c); err != nil {
			x.SetHeaders(c)
			FailureOf(err).answer(c, wire, x.Run)
		}
	}
}

func (x *exchange) count(c *gin.Context) error {
	request := x.request()
	request.Endpoint = x.spec.Count.Endpoint
	reply, err := x.post(c.Request.Context(), request)
	if err != nil {
		return err
	}
	answer, ok := x.spec.Count.Answer(reply.Body)
	if !ok {
		return refusal.New(refusal.UpstreamUnavailable, "The model's provider did not answer with a number of tokens.")
	}
	x.SetHeaders(c)
	c.Data(http.StatusOK, contentJSON, answer)
	return nil
}

// newExchange admits the caller, then reads the request and decides how to run it.
func newExchange(c *gin.Context, wire Wire, o Options, received server.Request) (*exchange, error) {
	x := &exchange{wire: wire, spec: wire.Spec()}
	admission, err := o.Executor.Kernel.Admit(c.Request.Context(), received.Request)
	if err != nil {
		return nil, err
	}
	members, model, err := ReadBody(received.Body) // nothing of it is looked at before the caller is admitted
	if err != nil {
		return nil, err
	}
	members = x.spec.withoutEmpty(members)
	if x.dialogue, err = wire.Read(members, model); err != nil {
		return nil, err
	}
	if x.Run, err = o.Open(received, admission, x.spec.Wire, model); err != nil {
		return nil, err
	}
	x.Admission = x.Admission.WithLabels()
	x.MaxAdded = x.spec.MaxBody
	if err = x.begin(c.GetHeader(HeaderMode), members, c.Request); err != nil {
		return nil, err
	}
	if err = x.readStructured(x.spec.Structured, members); err != nil {
		return nil, err
	}
	x.registered = x.Admission
	if err = x.BringTools(x.dialogue.Definitions()); err != nil {
		return nil, err
	}
	offered := x.dialogue.Tools()
	unknown := func(i int) error { return x.UnknownTool(offered.Param(i), offered.Names[i], x.spec.Import) }
	if err = x.SetOffer(offered.Names, unknown); err != nil {
		return nil, err
	}
	if err = x.NarrowChoice(offered.Choice, offered.Names); err != nil {
		return nil, err
	}
	if c, ok := x.dialogue.(Confirming); ok {
		if canAsk := c.Asks(); canAsk != nil {
			x.AskLater = x.askCaller(canAsk)
		}
	}
	x.writer = x.dialogue.Writer()
	if err := x.dialogue.History(c.Request.Context()); err != nil {
		return nil, err
	}
	return x, x.requireThread()
}

// requireThread refuses a request in no thread that offers the model a tool which uses threads, before the model is
// asked.
func (x *exchange) requireThread() error {
	if refused := x.Admission.RequireThread(x.Offer.Tools); refused != nil {
		return &Failure{Refused: refused}
	}
	return nil
}

// begin checks a request by the rules of its route.
func (x *exchange) begin(mode string, members rawjson.Object, request *http.Request) error {
	if err := x.checkMembers(x.spec, members); err != nil {
		return err
	}
	if err := x.SetMode(mode); err != nil {
		return err
	}
	return x.dialogue.Begin(x.Run, request)
}

// answers is how many answers were asked for.
func (x *exchange) answers() int { return max(x.Answers, 1) }

// RequestTurn requests the next turn from the model, and judges it. What the provider asks on the way is answered.
func (x *exchange) RequestTurn(modelCtx, ctx context.Context) (*Turn, error) {
	if c, ok := x.dialogue.(Confirming); ok {
		if err := c.Confirm(ctx); err != nil {
			return nil, err
		}
	}
	for {
		reply, err := x.read(modelCtx, ctx)
		if err != nil {
			return nil, err
		}
		x.Settle(reply.Usage.Spent)
		if len(reply.Answers) > x.answers() {
			x.abandon(ctx, reply)
			return nil, refusal.New(refusal.UpstreamUnavailable, "The model gave more answers than were asked for; none of them was used.")
		}
		if slices.ContainsFunc(reply.Answers, func(a *Answer) bool { return a.part(Hosted) != nil || a.part(Unknown) != nil }) {
			x.Admission.BringsResult("", nil) // its calls, and what is asked for, may come of what a tool of the provider has said
		}
		denied := x.hookBeside(ctx, reply)
		again, err := x.answerAsks(ctx, reply, denied)
		if err != nil {
			x.abandon(ctx, reply)
			return nil, err
		}
		if !again {
			x.judgeAll(ctx, reply, denied)
			return &x.judged, nil
		}
	}
}

// judgeAll judges the answers of a reply, which is the last one then.
func (x *exchange) judgeAll(ctx context.Context, reply *Reply, denied *refusal.Error) {
	x.last = reply
	x.judged = Turn{Decisions: x.judged.Decisions[:0], Tokens: reply.Usage.Tokens, Usage: reply.Usage.Raw}
	if x.judged.Tokens > 0 { // 0 fails a run with a bound of tokens
		x.judged.Tokens = SaturatingAdd(x.judged.Tokens, x.asked.tokens)
	}
	x.asked.tokens = 0
	for _, a := range reply.Answers {
		if a.decision == nil {
			x.judge(ctx, a, denied)
		}
		a.buffered = x.streams && x.whole
		x.judged.Decisions = append(x.judged.Decisions, a.decision)
		x.judged.Shown = x.judged.Shown || a.relay.sent
		x.judged.Final = x.judged.Final || a.Withheld != "" || slices.ContainsFunc(a.Parts, func(p *Part) bool { return p.NoRepair })
	}
	x.judged.Shown = x.judged.Shown && !x.judged.Final
	x.judged.Final = x.judged.Final || x.judged.Shown && x.follower == nil || x.answers() > 1
}

// Append adds the last turn to the conversation. Calls that cannot be in a history unchanged are told of as text:
// for a name that is not of its alphabet, a provider would refuse the whole request.
func (x *exchange) Append(outcomes []calls.Outcome) int {
	a := x.last.Answers[0]
	reports := a.decision.Reports
	native := a.calls()
	if len(native) == 0 || !x.canReplay(a, native) {
		first := max(0, slices.IndexFunc(reports, func(r gateway.Report) bool { return r.Refusal != nil }))
		return x.dialogue.Append(a, []Told{{Result: Feedback(outcomes[first], reports[first].Tool)}})
	}
	told := make([]Told, len(native))
	for i, p := range native {
		report := &reports[a.texts+i]
		outcome := outcomes[a.texts+i]
		told[i] = Told{Call: p, Arguments: p.Call.Arguments, Result: Feedback(outcome, report.Tool),
			Failed: outcome.Refusal != nil || report.Refusal != nil}
		if IsBlank(p.Call.Arguments) || report.Refusal != nil && report.Refusal.Stage == refusal.Parse {
			// Other readers of the history do not accept arguments that are not strict JSON.
			told[i].Arguments = []byte("{}")
		}
	}
	return x.dialogue.Append(a, told)
}

// canReplay reports whether the calls of an answer can be in a history unchanged.
func (x *exchange) canReplay(a *Answer, native []*Part) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return x.spec.MaxName == 0 || !x.CallsAreText() && a.part(Stray) == nil && !slices.ContainsFunc(native, func(p *Part) bool {
		return p.Call.Name == "" || len(p.Call.Name) > x.spec.MaxName || strings.Trim(p.Call.Name, letters) != ""
	})
}

// Input is an input of the last turn: of a call its arguments, of a text the text.
func (x *exchange) Input(i int) []byte {
	a := x.last.Answers[0]
	switch at := i - a.texts; {
	case at >= 0:
		return a.calls()[at].Call.Arguments
	case i == 0 && a.hasText:
		return a.text(Text)
	}
	return nil
}

// Judged, Running and Ended make it the observer of its run: what a turn says whose calls run is shown
// as soon as it has passed.
func (x *exchange) Judged(t *Turn) {
	if x.follower != nil {
		x.showRest()
		x.follower.Judged(t)
	}
}

// Running is of Observer.
func (x *exchange) Running(t *Turn) {
	x.showRest()
	if x.follower != nil {
		x.follower.Running(t)
	}
}

// Ended is of Observer.
func (x *exchange) Ended(t *Turn, outcomes []calls.Outcome) {
	if x.follower != nil {
		x.follower.Ended(t, outcomes)
	}
}

// showRest shows what a turn that passed says, as far as it was not shown before. Where the answer is to be JSON, texts of
// earlier turns would stand in front of it.
func (x *exchange) showRest() {
	a := x.last.Answers[0]
	if a.rested || a.refused() {
		return
	}
	a.rested = true
	x.flush(&a.relay)
	shown := slices.DeleteFunc(x.show(a),
		func(p Shown) bool { return p.Kind == Call || p.Kind == Text && (!a.passedText() || x.output != nil) })
	x.events.Buffer = x.writer.Rest(x.events.Buffer, a, shown, false, false)
}

// finishTurn answers with the last turn.
func (x *exchange) finishTurn(c *gin.Context) {
	all := make([][]Shown, len(x.last.Answers))
	for i, a := range x.last.Answers {
		x.flush(&a.relay)
		all[i] = x.show(a)
	}
	x.finish(c, x.last, all)
}

// finishMessage answers with a text in place of the last turn of the model.
func (x *exchange) finishMessage(c *gin.Context, text string) {
	reply := &Reply{ID: x.last.ID, Model: x.last.Model, Created: x.last.Created, Head: x.last.Head.Without(x.spec.Hooked...),
		Usage: x.last.Usage}
	var all [][]Shown
	for _, a := range x.last.Answers {
		reply.Answers = append(reply.Answers, &Answer{Index: a.Index, End: Done})
		all = append(all, []Shown{{Part: &Part{Row: x.spec.row(Text)}, Text: []byte(text)}})
	}
	if x.streams {
		x.writer.Turn(reply)
	}
	x.finish(c, reply, all)
}

func (x *exchange) finish(c *gin.Context, reply *Reply, all [][]Shown) {
	if !x.streams {
		x.SetHeaders(c)
		ExtendWriteDeadline(c)
		c.Data(http.StatusOK, contentJSON, wrapper.Escape(x.writer.Whole(reply, all, x.Usage().Encode())))
		return
	}
	for i, a := range reply.Answers {
		x.events.Buffer = x.writer.Rest(x.events.Buffer, a, all[i], true, i == len(all)-1)
	}
	x.events.Buffer = x.writer.Close(x.events.Buffer, x.Usage().Encode())
	x.events.Write()
}

// fail answers with a failure: in the stream if that has begun.
func (x *exchange) fail(c *gin.Context, f *Failure) {
	if x.streams && x.events.Begun() {
		x.events.Fail(f, x.writer.Fail(nil, f))
		return
	}
	x.SetHeaders(c)
	f.answer(c, x.wire, x.Run)
}

// Refuse answers requests that did not get as far as a face, in the shape of a wire.
func Refuse(wire Wire) func(*gin.Context, *refusal.Error) {
	return func(c *gin.Context, refused *refusal.Error) { Unserved(refused).answer(c, wire, nil) }
}

const contentJSON = "application/json; charset=utf-8"

// answer answers with a failure: the provider's own error as it was sent, or ours in the shape of the wire. r is nil
// where there is no run.
func (f *Failure) answer(c *gin.Context, wire Wire, r *Run) {
	runID := ""
	if r != nil {
		runID = r.ID()
	}
	if header := wire.Spec().IDHeader; header != "" && runID != "" {
		c.Header(header, runID)
	}
	if !f.WriteUpstream(c) {
		f.Write(c, contentJSON, append(wire.Error(f, runID), '\n'))
	}
}
