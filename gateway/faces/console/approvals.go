package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// approvalsData are the approvals that the caller sees and, for operators, the grants.
type approvalsData struct {
	List   admin.ApprovalList
	From   int // how many of those that were sorted are before the list
	More   int // where the list goes on among them; 0: it does not
	Grants admin.GrantList
}

// The store keeps approvals in the order of their ids, which is random. So many are sorted, and so many of
// these are on a page.
const (
	maxSorted      = 500
	shownApprovals = 50
)

// cut leaves of the approvals those of one page.
func (d *approvalsData) cut(from string) {
	all := d.List.Approvals
	if n, err := strconv.Atoi(from); err == nil {
		d.From = min(max(n, 0), len(all))
	}
	if to := d.From + shownApprovals; to < len(all) {
		d.More, all = to, all[:to]
	}
	d.List.Approvals = all[d.From:]
}

func (c *Console) approvals(w http.ResponseWriter, r *request) *refusal.Error {
	query := selected(r, "state", "rule", "from", "after", "grants_after")
	switch given := r.URL.Query(); {
	case !given.Has("state"):
		query.Set("state", "waiting")
	case given.Get("state") == "any":
		query.Del("state")
	}
	list, refused := ask[admin.ApprovalList](c, r, admin.Ask{
		Method: http.MethodGet, Path: "/v1/approvals",
		Query: url.Values{"state": query["state"], "rule": query["rule"], "after": query["after"], "limit": {strconv.Itoa(maxSorted)},
			"arguments": {"short"}},
	})
	if refused != nil {
		return refused
	}
	data := approvalsData{List: list}
	data.cut(query.Get("from"))
	if r.caller.Operator {
		after := url.Values{"after": query["grants_after"]}
		data.Grants, refused = ask[admin.GrantList](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/grants", Query: after})
		if refused != nil {
			return refused
		}
	}
	c.show(w, r, http.StatusOK, "approvals", page{Title: "Approvals", Live: liveFor(r), Data: data, Form: query})
	return nil
}

// maxCounted is how many approvals the overview counts: it is fetched again at every change.
const maxCounted = 100

// waiting counts the approvals that wait for votes, and those of them that the caller may
// decide, of which Next waits longest. More says that some were not counted, Problem that none could be.
type waiting struct {
	All, Yours int
	More       bool
	Next       *admin.ApprovalView
	Problem    *refusal.Error
}

func (c *Console) countWaiting(r *request) waiting {
	query := url.Values{"state": {"waiting"}, "limit": {strconv.Itoa(maxCounted)}, "arguments": {"no"}}
	list, refused := ask[admin.ApprovalList](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/approvals", Query: query})
	counted := waiting{More: list.Next != "", Problem: refused}
	for i := range list.Approvals {
		if a := &list.Approvals[i]; a.State == approval.Waiting {
			counted.All++
			if a.MayVote {
				counted.Yours++
				counted.Next = cmp.Or(counted.Next, a)
			}
		}
	}
	return counted
}

// liveFor are the events of a page of approvals: a vote is a record of the log. Streams of
// events are for operators.
func liveFor(r *request) string {
	if !r.caller.Operator {
		return ""
	}
	return "decisions config"
}

// approvalData is an approval, why what was sent last did not count, and what the caller may decide next.
type approvalData struct {
	admin.ApprovalView
	Problem *refusal.Error
	Waiting waiting // counted once the approval has been decided
}

func (c *Console) approval(w http.ResponseWriter, r *request) *refusal.Error {
	return c.showApproval(w, r, nil, url.Values{})
}

// showApproval shows the approval of a request, below the problem with its form, if there is
// one.
func (c *Console) showApproval(w http.ResponseWriter, r *request, problem *refusal.Error, form url.Values) *refusal.Error {
	found, refused := ask[admin.ApprovalView](c, r, onApproval(http.MethodGet, r, nil))
	if refused != nil {
		return refused
	}
	data := approvalData{ApprovalView: found, Problem: problem}
	if found.State != approval.Waiting {
		data.Waiting = c.countWaiting(r)
	}
	status, live := http.StatusOK, liveFor(r)
	if problem != nil {
		status, live = problem.Status(), "" // fetching it again would fetch another page
	}
	c.show(w, r, status, "approval", page{Title: found.Tool + ", requested by " + found.Agent, Live: live, Data: data, Form: form})
	return nil
}

// onApproval asks for the approval of a request.
func onApproval(method string, r *request, body any) admin.Ask {
	return admin.Ask{Method: method, Path: "/v1/approvals/{id}", Wildcards: map[string]string{"id": r.PathValue("id")}, Body: body}
}

// maxVote is the longest form of a vote, in bytes: a reason of 500 characters, encoded.
const maxVote = 16 << 10

// vote sends the vote of a form, and leads back to the approval.
func (c *Console) vote(w http.ResponseWriter, r *request) *refusal.Error {
	form, refused := formOf(w, r)
	if refused != nil {
		return refused
	}
	body := admin.VoteBody{
		Vote: form.Get("vote"), Digest: form.Get("digest"),
		Reason: strings.TrimSpace(strings.ReplaceAll(form.Get("reason"), "\r\n", "\n")),
	}
	scope, span := form.Get("scope"), strings.TrimSpace(form.Get("for"))
	// The filled-in fields are sent, so that they are refused where they cannot be voted with.
	if scope != "" || span != "" {
		body.Remember = &admin.RememberBody{Scope: scope, For: span}
	}
	if _, refused := ask[admin.ApprovalView](c, r, onApproval(http.MethodPost, r, body)); refused != nil {
		return c.showApproval(w, r, refused, form)
	}
	return c.back(w, r)
}

// formOf reads the form of a request. A field that is there twice says nothing clear.
func formOf(w http.ResponseWriter, r *request) (url.Values, *refusal.Error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxVote)
	if err := r.ParseForm(); err != nil {
		return nil, refusal.New(refusal.BadRequest, "The form cannot be read, or is too long.")
	}
	for _, values := range r.PostForm {
		if len(values) > 1 {
			return nil, refusal.New(refusal.BadRequest, "A field of the form is there twice.")
		}
	}
	return r.PostForm, nil
}

// back leads to the page of the approval, by GET.
func (c *Console) back(w http.ResponseWriter, r *request) *refusal.Error {
	http.Redirect(w, r.Request, "/console/approvals/"+url.PathEscape(r.PathValue("id")), http.StatusSeeOther)
	return nil
}

func (c *Console) revoke(w http.ResponseWriter, r *request) *refusal.Error {
	if _, refused := ask[admin.ApprovalView](c, r, onApproval(http.MethodDelete, r, nil)); refused != nil {
		return c.showApproval(w, r, refused, url.Values{})
	}
	return c.back(w, r)
}

func (c *Console) revokeGrant(w http.ResponseWriter, r *request) *refusal.Error {
	id := map[string]string{"id": r.PathValue("id")}
	_, refused := ask[admin.GrantView](c, r, admin.Ask{Method: http.MethodDelete, Path: "/v1/grants/{id}", Wildcards: id})
	if refused != nil {
		return refused
	}
	http.Redirect(w, r.Request, "/console/approvals", http.StatusSeeOther)
	return nil
}
