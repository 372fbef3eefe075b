package admin

import (
	"net/http"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/policy/lab"
)

// Endpoints are those of this package.
func (s *Sources) Endpoints() []Endpoint {
	get := func(path, summary string, answer any, serve func(*Request) (any, error), query ...Parameter) Endpoint {
		return Endpoint{Method: http.MethodGet, Path: path, Summary: summary, Query: query, Answer: answer, Serve: serve}
	}
	paging := []Parameter{{"limit", "how many entries, 1 to 500; 50 where it is absent"}, {"after", "next of the page before"}}
	before := Parameter{"before", "next of the answer before, where the log was not read to its beginning"}
	return []Endpoint{
		get("/v1/status", "The state of this gateway, and counts of the last five minutes", Status{}, s.status),
		get("/v1/activity", "What this gateway has judged, run and charged in equal intervals, and what has changed", Activity{},
			s.activity, Parameter{"span", "15m, 1h or 24h; 1h where it is absent"}),
		get("/v1/config", "The configuration in force, without secrets", Configuration{},
			func(*Request) (any, error) { return s.Configuration(), nil }),
		get("/v1/decisions", "Decisions of the audit log, the newest first", Decisions{}, s.decisions, decisionsQuery...),
		get("/v1/decisions/{call_id}", "Everything that is known of one call", Case{}, s.decision, before),
		get("/v1/policy", "The rows of the policy in force", Policy{}, s.policy, paging...),
		{
			Method: http.MethodPost, Path: "/v1/policy/explain", Summary: "Which row of the policy decides, and why",
			Body: ExplainRequest{}, Answer: Explained{}, MaxBody: s.maxBody, Serve: s.explain,
		},
		get("/v1/candidate", "Calls that the candidate judges differently", lab.CandidateReport{},
			func(*Request) (any, error) { return s.Candidate(), nil }),
		get("/v1/tools", "The tools, and which agents may use them", Tools{}, s.tools, paging...),
		get("/v1/tools/{name}", "The definitions of one tool, in all its versions", ToolVersions{}, s.tool),
		get("/v1/runs/{id}", "What the turns of a request to a model did", runs.Run{}, s.run),
		{
			Method: http.MethodPost, Path: "/v1/check", Summary: "Judges a completion as any known agent; executes and writes nothing",
			Body: CheckRequest{}, Answer: gateway.Report{}, MaxBody: s.maxBody, Serve: s.check,
		},
		{
			Method: http.MethodGet, Path: "/v1/events", Summary: "Says that something changed, at most once a second, and never what",
			Access: Operators, Answer: "", Stream: s.events,
		},
	}
}
