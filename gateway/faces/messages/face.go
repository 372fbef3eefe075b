package messages

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	wire "github.com/callgate/callgate/upstream/messages"
	"github.com/callgate/callgate/wrapper"
)

// Face answers requests. It is safe for concurrent use.
type Face struct{ options turns.Options }

// New returns the face of a kernel.
func New(options turns.Options) *Face { return &Face{options: options} }

// maxBodyBytes is how long a request may be (AM-06), and how much a run may add to it.
const maxBodyBytes = 32 << 20

// Mount mounts the routes of the face.
func (f *Face) Mount(s *server.Server) {
	route := server.Route{
		Method: http.MethodPost, Path: "/v1/messages", Refuse: Refuse, Serve: f.create, APIKey: true, Query: []string{"beta"},
		MaxBody: func() int { return maxBodyBytes }, ExtraHeaders: []string{turns.HeaderMode},
	}
	s.Mount(route)
	route.Path, route.Serve = "/v1/messages/count_tokens", f.countTokens
	s.Mount(route)
	s.MountAPI(server.API{Prefixes: []string{"/v1/messages", "/v1/complete", "/api/hello"}, Refuse: Refuse, Advice: advice})
	s.MountAPI(server.API{Prefixes: []string{"/v1/models", "/v1/files", "/v1/skills", "/v1/organizations"}, Header: headerVersion, Refuse: Refuse, Advice: advice})
}

// advice is for clients that ask for another part of the API.
const advice = "Of this API Callgate serves POST /v1/messages, POST /v1/messages/count_tokens and GET /v1/models. " +
	"It passes nothing else on: for the rest, make a second client whose base URL is the provider's own."

// Headers of the API.
const (
	headerVersion   = "Anthropic-Version"
	headerBeta      = "Anthropic-Beta"
	headerSession   = "X-Claude-Code-Session-Id"
	maxHeaderValue  = 4 << 10
	maxThreadLength = 1 << 10
	maxBetaLength   = 64
)

// forwardedHeaders are the headers of a request that the provider gets as they are (AM-01, AM-03).
func forwardedHeaders(c *gin.Context) (http.Header, error) {
	header := http.Header{}
	for _, name := range []string{headerVersion, headerBeta} {
		values := c.Request.Header.Values(name)
		size := 0
		for _, v := range values {
			size += len(v)
		}
		if size > maxHeaderValue {
			return nil, turns.Bad(name, "The header %s is longer than %d bytes.", name, maxHeaderValue)
		}
		if len(values) > 0 {
			header[name] = values
		}
	}
	return header, nil
}

// forwardedQuery is the query that the provider gets: a plain word as beta.
func forwardedQuery(c *gin.Context) (string, error) {
	beta, given := c.GetQuery("beta")
	switch {
	case !given:
		return "", nil
	case len(beta) > maxBetaLength || strings.Trim(beta, labelLetters) != "":
		return "", turns.Bad("beta", "The value of beta in the path must be a word of at most %d letters, digits, hyphens, underscores and dots, such as true.", maxBetaLength)
	}
	return "beta=" + beta, nil
}

// labelled takes the session of a coding agent for the thread of a request that names none
// (AM-04). It is a label for the log, and identifies nobody.
func labelled(c *gin.Context, received server.Request) server.Request {
	session := c.Request.Header.Values(headerSession)
	if received.Thread == "" && len(session) == 1 && len(session[0]) <= maxThreadLength && strings.Trim(session[0], labelLetters) == "" {
		received.Thread = session[0]
	}
	return received
}

const labelLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// newRun admits the caller, then reads the request and decides how to run it.
func (f *Face) newRun(c *gin.Context, received server.Request) (*run, error) {
	received = labelled(c, received)
	opened, body, err := turns.Begin(c.Request.Context(), f.options, received, upstream.MessagesWire, readRequest)
	if err != nil {
		return nil, err
	}
	r := &run{Run: opened, request: body}
	r.MaxAdded = maxBodyBytes
	if r.header, err = forwardedHeaders(c); err != nil {
		return nil, err
	}
	if r.query, err = forwardedQuery(c); err != nil {
		return nil, err
	}
	if err = r.checkRules(); err != nil {
		return nil, err
	}
	if err = r.checkMembers(); err != nil {
		return nil, err
	}
	if err = r.readSafeguards(); err != nil {
		return nil, err
	}
	if err = r.SetMode(c.GetHeader(turns.HeaderMode)); err != nil {
		return nil, err
	}
	if err = r.readOffer(); err != nil {
		return nil, err
	}
	if err = r.NarrowChoice(body.choice, r.request.toolNames()); err != nil {
		return nil, err
	}
	return r, r.hookHistory(c.Request.Context())
}

// countTokens forwards a request whose tokens are to be counted (AM-80), after the same checks.
func (f *Face) countTokens(c *gin.Context, received server.Request) {
	r, err := f.newRun(c, received)
	if err != nil {
		writeFailure(c, nil, turns.FailureOf(err))
		return
	}
	reply, err := r.post(c.Request.Context(), upstream.CountTokens)
	if err == nil && !isCount(reply.Body) {
		err = refusal.New(refusal.UpstreamUnavailable, "The model's provider did not answer with a number of tokens.")
	}
	if err != nil {
		writeFailure(c, r, turns.FailureOf(err))
		return
	}
	setHeaders(c, reply.Header)
	c.Data(http.StatusOK, contentJSON, reply.Body)
}

// isCount reports whether a body is an object with a number of tokens, and nothing in which a call
// could be found.
func isCount(body []byte) bool {
	o, err := rawjson.Read(body)
	if err != nil {
		return false
	}
	n := o.Get("input_tokens")
	return n != nil && n[0] >= '0' && n[0] <= '9' && rawjson.HoldsNoCall(body)
}

// create answers a request for a reply.
func (f *Face) create(c *gin.Context, received server.Request) {
	r, err := f.newRun(c, received)
	if err != nil {
		writeFailure(c, nil, turns.FailureOf(err))
		return
	}
	if r.request.stream {
		r.stream = newEventStream(c, r)
		r.KeepAlive = r.stream.keepAlive
		defer r.stream.Release()
	}
	r.Answer(c, r)
}

// Finish answers with the last turn.
func (r *run) Finish(c *gin.Context) {
	if r.stream != nil {
		r.stream.finish(r.last)
		return
	}
	r.write(c, r.last.reply.AppendMessage(nil, r.shownBlocks(), r.usage()))
}

// Fail answers with a failure: in the stream if that has begun.
func (r *run) Fail(c *gin.Context, f *turns.Failure) {
	if r.stream != nil && r.stream.Begun() {
		r.stream.fail(f)
		return
	}
	writeFailure(c, r, f)
}

// write answers with a whole message.
func (r *run) write(c *gin.Context, message []byte) {
	r.setHeaders(c)
	turns.ExtendWriteDeadline(c)
	c.Data(http.StatusOK, contentJSON, wrapper.Escape(message))
}

// FinishMessage answers with a text in place of the last turn of the model.
func (r *run) FinishMessage(c *gin.Context, text string) {
	reply := r.last.reply.Ended("end_turn")
	block := wire.TextBlock(text)
	if r.stream != nil {
		r.stream.finishMessage(reply, &block)
		return
	}
	r.write(c, reply.AppendMessage(nil, []*wire.Block{&block}, r.usage()))
}

// writeFailure answers with a failure. r is nil where there is no run yet.
func writeFailure(c *gin.Context, r *run, f *turns.Failure) {
	requestID := ""
	if r != nil {
		r.SetHeaders(c)
		if requestID = c.Writer.Header().Get(server.HeaderRunID); requestID != "" {
			c.Header(headerRequestID, requestID)
		}
	}
	if !f.WriteUpstream(c) {
		f.Write(c, contentJSON, errorBody(f, requestID))
	}
}

// Refuse answers a request that did not get as far as this face, in the API's shape.
func Refuse(c *gin.Context, refused *refusal.Error) { writeFailure(c, nil, turns.Unserved(refused)) }
