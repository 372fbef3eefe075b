package messages

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

// wire is the wire of the Messages API.
type wire struct{}

var spec = &turns.Spec{
	Wire: upstream.MessagesWire, Rows: []*turns.Row{&rowText.Row, &rowCall.Row, &rowThinking.Row},
	Own: ownMembers, Forwarded: [][]string{forwardedMembers}, Switches: switches, Hooked: madeUp, MaxBody: maxBodyBytes,
	Import:     "anthropic",
	UnknownKey: "messages: {unknown_blocks: pass}", IDHeader: headerRequestID,
	Count:      &turns.Count{Endpoint: upstream.CountTokens, Answer: count},
	Structured: [][]string{{"output_config", "format"}, {"output_format"}}, Ordered: true, HidesThoughtsInRuns: true,
}

// Spec is of turns.Wire.
func (wire) Spec() *turns.Spec { return spec }

// Error is of turns.Wire.
func (wire) Error(f *turns.Failure, runID string) []byte { return errorBody(f, runID) }

// Face answers requests. It is safe for concurrent use.
type Face struct{ options turns.Options }

// New returns the face of a kernel.
func New(options turns.Options) *Face { return &Face{options: options} }

// maxBodyBytes is how long a request may be (AM-06), and how much a run may add to it.
const maxBodyBytes = 32 << 20

// Mount mounts the routes of the face.
func (f *Face) Mount(s *server.Server) {
	route := server.Route{
		Method: http.MethodPost, Path: "/v1/messages", Refuse: Refuse, Serve: labelled(turns.Serve(wire{}, f.options)), APIKey: true,
		Query:   []string{"beta"},
		MaxBody: func() int { return maxBodyBytes }, ExtraHeaders: []string{turns.HeaderMode},
	}
	s.Mount(route)
	route.Path, route.Serve = "/v1/messages/count_tokens", labelled(turns.ServeCount(wire{}, f.options))
	s.Mount(route)
	s.MountAPI(server.API{Prefixes: []string{"/v1/messages", "/v1/complete", "/api/hello"}, Refuse: Refuse, Advice: advice})
	s.MountAPI(server.API{Prefixes: []string{"/v1/models", "/v1/files", "/v1/skills", "/v1/organizations"}, Header: headerVersion,
		Refuse: Refuse, Advice: advice})
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
func forwardedHeaders(from http.Header) (header http.Header, _ error) {
	for _, name := range []string{headerVersion, headerBeta} {
		values := from.Values(name)
		size := 0
		for _, v := range values {
			size += len(v)
		}
		if size > maxHeaderValue {
			return nil, turns.Bad(name, "The header %s is longer than %d bytes.", name, maxHeaderValue)
		}
		if len(values) > 0 {
			if header == nil {
				header = http.Header{}
			}
			header[name] = values
		}
	}
	return header, nil
}

// forwardedQuery is the query that the provider gets: a plain word as beta.
func forwardedQuery(from url.Values) (string, error) {
	beta := from.Get("beta")
	switch {
	case !from.Has("beta"):
		return "", nil
	case len(beta) > maxBetaLength || strings.Trim(beta, labelLetters) != "":
		return "", turns.Bad("beta", "The value of beta in the path must be a word of at most %d letters, digits, hyphens, underscores and dots, such as true.", maxBetaLength)
	}
	return "beta=" + beta, nil
}

// labelled takes the session of a coding agent for the thread of a request that names none
// (AM-04). It is a label for the log, and identifies nobody.
func labelled(serve func(*gin.Context, server.Request)) func(*gin.Context, server.Request) {
	return func(c *gin.Context, received server.Request) {
		session := c.Request.Header.Values(headerSession)
		if received.Thread == "" && len(session) == 1 && len(session[0]) <= maxThreadLength &&
			strings.Trim(session[0], labelLetters) == "" {
			received.Thread = session[0]
		}
		serve(c, received)
	}
}

const labelLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// count passes on an object with a number of tokens, and nothing in which a call could be found (AM-80).
func count(body []byte) (answer []byte, ok bool) {
	o, err := rawjson.Read(body)
	if err != nil {
		return nil, false
	}
	n := o.Get("input_tokens")
	return body, n != nil && n[0] >= '0' && n[0] <= '9' && rawjson.HoldsNoCall(body)
}

// Refuse answers a request that did not get as far as this face, in the API's shape.
var Refuse = turns.Refuse(wire{})
