package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/refusal"
)

// maxForm is the longest form, in bytes: a completion of the default size, encoded.
const maxForm = 4 << 20

// selected returns the parameters of a request that are not empty.
func selected(r *request, names ...string) url.Values {
	given, list := r.URL.Query(), url.Values{}
	for _, name := range names {
		if v := given.Get(name); v != "" {
			list.Set(name, v)
		}
	}
	return list
}

// overviewData is the state of the gateway, its last refusals, and what waits for people.
type overviewData struct {
	Status   admin.Status
	Activity admin.Activity
	Charts   []chart
	Refused  labelled // the last refusals
	Most     []refusedOf
	Counted  int             // refusals of the period of which Most are
	More     bool            // there were more
	Last     admin.Decisions // the last decision
	Waiting  waiting
}

func (c *Console) overview(w http.ResponseWriter, r *request) *refusal.Error {
	if !r.caller.Operator && len(r.caller.Approves) > 0 {
		http.Redirect(w, r.Request, "/console/approvals", http.StatusSeeOther)
		return nil
	}
	status, refused := ask[admin.Status](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/status"})
	if refused != nil {
		return refused
	}
	activity, refused := ask[admin.Activity](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/activity", Query: selected(r, "span")})
	if refused != nil {
		return refused
	}
	refusals, refused := ask[admin.Decisions](c, r,
		admin.Ask{Method: http.MethodGet, Path: "/v1/decisions",
			Query: url.Values{"limit": {strconv.Itoa(countedRefusals)}, "since": {activity.Span}, "verdict": {"refused"}, "asked": {"no"}}})
	if refused != nil {
		return refused
	}
	last, refused := ask[admin.Decisions](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/decisions", Query: url.Values{"limit": {"1"}}})
	if refused != nil {
		return refused
	}
	data := overviewData{
		Status: status, Activity: activity, Charts: chartsOf(&activity), Last: last, Waiting: c.countWaiting(r),
		Refused: repeated(refusals.Decisions, activity.Span), Most: mostRefused(refusals.Decisions), Counted: len(refusals.Decisions),
		More: refusals.Next != 0,
	}
	c.show(w, r, http.StatusOK, "overview", page{Title: "Overview", Live: "decisions config standing", Data: data})
	return nil
}

// The overview counts so many of the last refusals of its period, and shows so many rows of them.
const (
	countedRefusals = 100
	shownRefusals   = 12
	shownMost       = 10
)

// refusedOf is how often an agent was refused a tool.
type refusedOf struct {
	Agent, Tool string
	N           int
}

// mostRefused are the agents and tools that were refused most often, the most frequent first.
func mostRefused(list []admin.Decision) (most []refusedOf) {
	for i := range list {
		d := &list[i]
		at := slices.IndexFunc(most, func(m refusedOf) bool { return m.Agent == d.Agent && m.Tool == d.Tool })
		if at < 0 {
			at, most = len(most), append(most, refusedOf{d.Agent, d.Tool, 0})
		}
		most[at].N++
	}
	slices.SortStableFunc(most, func(a, b refusedOf) int { return b.N - a.N })
	return most[:min(len(most), shownMost)]
}

// repeated are the last refusals since a time, with those alike in one row, that of the last.
func repeated(list []admin.Decision, since string) labelled {
	rows := labelled{Label: "Last refusals", Since: since}
	for i := range list {
		d := &list[i]
		at := slices.IndexFunc(rows.Decisions, func(o admin.Decision) bool {
			return o.Agent == d.Agent && o.Principal == d.Principal && o.Tool == d.Tool && o.Code == d.Code && o.Stage == d.Stage &&
				o.Workspace == d.Workspace && o.Project == d.Project
		})
		switch {
		case at >= 0:
			rows.counts[at]++
		case len(rows.Decisions) < shownRefusals:
			rows.Decisions, rows.counts = append(rows.Decisions, *d), append(rows.counts, 1)
		}
	}
	return rows
}

// verdictFilter is a verdict as addresses and pages call it, with what it is in the API.
type verdictFilter struct{ Value, Word, verdict, asked string }

var verdictFilters = []verdictFilter{
	{"allowed", wordAllowed, string(audit.ToolCall), ""}, {"asked", wordAsked, string(audit.Refused), "yes"},
	{"refused", wordRefused, string(audit.Refused), "no"}, {"text", wordText, string(audit.Text), ""},
}

// decisionsQuery is what the API is asked for by the filters of the page.
func decisionsQuery(filters url.Values) (url.Values, *refusal.Error) {
	query, verdict := maps.Clone(filters), filters.Get("verdict")
	if verdict == "" {
		return query, nil
	}
	words := make([]string, len(verdictFilters))
	for i, v := range verdictFilters {
		if v.Value == verdict {
			query["verdict"], query["asked"] = []string{v.verdict}, []string{v.asked}
			return query, nil
		}
		words[i] = v.Value
	}
	return nil, refusal.New(refusal.BadRequest, "The parameter verdict must be one of "+strings.Join(words, ", ")+".")
}

// callsData is a page of decisions, and the names that the form suggests.
type callsData struct {
	List    admin.Decisions
	Names   names
	Problem *refusal.Error // of the filters
}

func (c *Console) calls(w http.ResponseWriter, r *request) *refusal.Error {
	query := selected(r, "agent", "tool", "code", "project", "verdict", "since", "ledger", "id", "before")
	config, refused := ask[admin.Configuration](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/config"})
	if refused != nil {
		return refused
	}
	live := "decisions"
	if query.Has("before") {
		live = "" // an older page does not change
	}
	status := http.StatusOK
	var list admin.Decisions
	of, problem := decisionsQuery(query)
	if problem == nil {
		list, problem = ask[admin.Decisions](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/decisions", Query: of})
	}
	if problem != nil {
		if problem.Code != refusal.BadRequest {
			return problem
		}
		status, live = problem.Status(), ""
	}
	c.show(w, r, status, "calls", page{Title: "Calls", Live: live, Data: callsData{list, namesOf(&config), problem}, Form: query})
	return nil
}

func (c *Console) call(w http.ResponseWriter, r *request) *refusal.Error {
	one := admin.Ask{
		Method: http.MethodGet, Path: "/v1/decisions/{call_id}", Wildcards: map[string]string{"call_id": r.PathValue("call_id")},
		Query: selected(r, "before"),
	}
	return showAnswer(c, w, r, "call", one, func(found admin.Case) page {
		live := "decisions"
		if n := len(found.Records); n > 0 && found.Records[n-1].Event == audit.Ending {
			live = ""
		}
		return page{Title: "Call " + found.CallID, Live: live, Data: found}
	})
}

func (c *Console) threads(w http.ResponseWriter, r *request) *refusal.Error {
	query := selected(r, "after")
	live := "decisions"
	if query.Has("after") {
		live = ""
	}
	return showAnswer(c, w, r, "threads", admin.Ask{Method: http.MethodGet, Path: "/v1/threads", Query: query},
		func(list admin.ThreadList) page {
			return page{Title: "Threads", Live: live, Data: list}
		})
}

func (c *Console) thread(w http.ResponseWriter, r *request) *refusal.Error {
	return c.showThread(w, r, http.MethodGet, "/v1/threads/{id}")
}

func (c *Console) closeThread(w http.ResponseWriter, r *request) *refusal.Error {
	return c.showThread(w, r, http.MethodPost, "/v1/threads/{id}/close")
}

// showThread shows the thread that an endpoint answers with.
func (c *Console) showThread(w http.ResponseWriter, r *request, method, path string) *refusal.Error {
	one := admin.Ask{Method: method, Path: path, Wildcards: map[string]string{"id": r.PathValue("id")}}
	return showAnswer(c, w, r, "thread", one, func(found admin.Thread) page {
		live := "decisions"
		if method != http.MethodGet {
			live = "" // the same page would be fetched by GET
		}
		return page{Title: "Thread " + found.ID, Live: live, Data: found}
	})
}

func (c *Console) tools(w http.ResponseWriter, r *request) *refusal.Error {
	list := admin.Ask{Method: http.MethodGet, Path: "/v1/tools", Query: selected(r, "after")}
	return showAnswer(c, w, r, "tools", list, func(list admin.Tools) page {
		return page{Title: "Tools", Live: "config standing", Data: list}
	})
}

func (c *Console) tool(w http.ResponseWriter, r *request) *refusal.Error {
	one := admin.Ask{Method: http.MethodGet, Path: "/v1/tools/{name}", Wildcards: map[string]string{"name": r.PathValue("name")}}
	return showAnswer(c, w, r, "tool", one, func(found admin.ToolVersions) page {
		return page{Title: "Tool " + found.Name, Live: "config standing", Data: found}
	})
}

// policyData is the policy, and what it says of one question.
type policyData struct {
	Policy    admin.Policy
	Place     string // workspace/project that is taken for none
	Names     names
	Candidate bool // there is one, or one that does not load
	Explained *admin.Explained
	Problem   *refusal.Error // of the question
}

func (c *Console) policy(w http.ResponseWriter, r *request) *refusal.Error {
	rows, refused := ask[admin.Policy](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/policy", Query: selected(r, "after")})
	if refused != nil {
		return refused
	}
	config, refused := ask[admin.Configuration](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/config"})
	if refused != nil {
		return refused
	}
	candidate, refused := ask[lab.CandidateReport](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/candidate"})
	if refused != nil {
		return refused
	}
	data := policyData{Policy: rows, Place: config.DefaultProject, Names: namesOf(&config),
		Candidate: candidate.Active || candidate.Fault != ""}
	values := selected(r, "agent", "tool", "project", "arguments")
	if len(values) > 0 {
		body := admin.ExplainRequest{Agent: values.Get("agent"), Tool: values.Get("tool"), Project: values.Get("project")}
		if text := strings.TrimSpace(values.Get("arguments")); text != "" {
			body.Arguments = []byte(text)
		}
		x, problem := ask[admin.Explained](c, r, admin.Ask{Method: http.MethodPost, Path: "/v1/policy/explain", Body: body})
		if data.Problem = problem; problem == nil {
			data.Explained = &x
		}
	}
	c.show(w, r, http.StatusOK, "policy", page{Title: "Policy", Live: "config", Data: data, Form: values})
	return nil
}

// checkData is the form of the playground, and the verdict on what is in it.
type checkData struct {
	Names   names
	Agent   string // that is taken for none
	Default string // workspace/project that is taken for none
	Request admin.CheckRequest
	Place   string // workspace/project
	Report  *gateway.Report
}

func (c *Console) check(w http.ResponseWriter, r *request) *refusal.Error {
	config, refused := ask[admin.Configuration](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/config"})
	if refused != nil {
		return refused
	}
	data := checkData{Names: namesOf(&config), Agent: config.DefaultAgent, Default: config.DefaultProject}
	data.Request.Agent = r.URL.Query().Get("agent")
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			return refusal.New(refusal.RequestTooLarge, "The form cannot be read, or is too long.")
		}
		form := r.PostForm
		// A browser sends the ends of lines of a text field as CR LF.
		text := strings.ReplaceAll(form.Get("completion"), "\r\n", "\n")
		data.Place = form.Get("project")
		workspace, project, _ := strings.Cut(data.Place, "/")
		data.Request = admin.CheckRequest{Completion: text, Agent: form.Get("agent"), Workspace: workspace, Project: project,
			FinishReason: form.Get("finish_reason")}
		report, refused := ask[gateway.Report](c, r, admin.Ask{Method: http.MethodPost, Path: "/v1/check", Body: data.Request})
		if refused != nil {
			return refused
		}
		data.Report = &report
	}
	c.show(w, r, http.StatusOK, "check", page{Title: "Check", Data: data})
	return nil
}

// auditData is the end of the chain, and the configuration in force.
type auditData struct {
	Status admin.Status
	Config admin.Configuration
}

func (c *Console) audit(w http.ResponseWriter, r *request) *refusal.Error {
	status, refused := ask[admin.Status](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/status"})
	if refused != nil {
		return refused
	}
	config, refused := ask[admin.Configuration](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/config"})
	if refused != nil {
		return refused
	}
	c.show(w, r, http.StatusOK, "audit",
		page{Title: "Audit log and configuration", Live: "decisions config", Data: auditData{status, config}})
	return nil
}
