package approval

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Approval is the record of one question: may this call run? Of its fields, Votes, Ended and
// Ran change while it is kept, and Arguments are deleted when it ends.
type Approval struct {
	ID string `json:"id"` // of the call that asked
	Call
	// Digest is that of the call. A voter names it, so that a yes is to what was shown.
	Digest string `json:"digest"`
	// AnyThread is that of the call in any thread, for grants of the scope Same.
	AnyThread string `json:"any_thread"`
	// Rules are those that the call asked for, and Rows the policy rows that asked, as
	// file:line.
	Rules []string `json:"rules"`
	Rows  []string `json:"rows,omitempty"`
	// Opened is when it was asked, and Until when votes end.
	Opened time.Time `json:"opened"`
	Until  time.Time `json:"until"`
	// Config is the digest of the configuration that asked.
	Config string `json:"config,omitempty"`
	// Ledger names what is kept of the thread of the call, where the policy asks it.
	Ledger string `json:"ledger,omitempty"`
	// Repeat is the idempotency key that the request brought which asked; zero: none. The call
	// that runs by the approval takes it, so that the same request again starts no other.
	Repeat Repeat `json:"repeat,omitzero"`

	// Votes hold one vote of each voter, in the order of their first votes.
	Votes []Vote `json:"votes,omitempty"`
	Ended Ending `json:"ended,omitzero"`
	// Ran is the id of the call that was dispatched by this approval, at RanAt.
	Ran   string    `json:"ran,omitempty"`
	RanAt time.Time `json:"ran_at,omitzero"`
	// Revision counts the changes. It is larger after each.
	Revision int `json:"revision,omitempty"`
}

// Repeat is an idempotency key, and the digest of the requests that may bring it.
type Repeat struct {
	Key    string `json:"key"`
	Digest string `json:"digest"`
}

// Vote is the decision of one person.
type Vote struct {
	// By is the principal of the voter.
	By  string `json:"by"`
	Yes bool   `json:"yes"`
	// Digest is that of the call that the voter was shown.
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	// Rules are those of the approval that the voter could decide then.
	Rules []string `json:"rules"`
	// Until is until when the vote counts: the end of the credential that it was cast with,
	// where nothing else tells what its voter may do then; zero: it has none.
	Until time.Time `json:"until,omitzero"`
	// Caller says that the vote came from the client that made the call.
	Caller bool `json:"caller,omitempty"`
	// Remember is for which calls a yes may stand, and for how long; the zero value is for
	// none but this one.
	Remember Remember `json:"remember,omitzero"`
	// Once says that a no does not stand: the same call may be asked again at once.
	Once bool `json:"once,omitempty"`
}

// Remember is the offer of a vote to let its yes stand.
type Remember struct {
	Scope Scope         `json:"scope"`
	For   time.Duration `json:"for"` // in nanoseconds
}

// End is why an approval has ended without being used.
type End string

// The ends.
const (
	EndDenied    End = "denied"
	EndWithdrawn End = "withdrawn" // by its caller
	EndRevoked   End = "revoked"   // by an operator
	// EndExpired marks an approval that has expired as recorded in the audit log. Whether
	// one has expired does not depend on it.
	EndExpired End = "expired"
)

// Ending says how an approval has ended. The zero value says that it has not.
type Ending struct {
	End    End       `json:"end"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	// Once says that a denial does not stand.
	Once bool `json:"once,omitempty"`
}

// State is the state of an approval, in the words of the wire.
type State string

// The states.
const (
	Waiting   State = "waiting"
	Approved  State = "approved"
	Used      State = "used"
	Denied    State = "denied"
	Expired   State = "expired"
	Withdrawn State = "withdrawn"
)

// The bounds of an approval. Lengths are in bytes but for that of a reason.
const (
	MaxReason = 500 // characters
	MaxVotes  = 64  // and one more, which is a no
	MaxRules  = 16
	MaxRows   = 256

	maxName = 1024
	maxUser = 8192
)

const (
	// Grace is how long an approval can be used at least after its last yes.
	Grace = 10 * time.Minute
	// MaxDenial is how long a denial stands at most.
	MaxDenial = time.Hour
	// Retention is how long an approval is kept after it has ended.
	Retention = 24 * time.Hour
)

// The errors of changes.
var (
	// ErrEnded says that the approval has ended, or has expired.
	ErrEnded = errors.New("approval: it has ended")
	// ErrUsed says that a call was dispatched by the approval already.
	ErrUsed = errors.New("approval: it was used")
	// ErrDigest says that the voter was shown another call.
	ErrDigest = errors.New("approval: the vote is to another call")
	// ErrVotes says that too many people have voted.
	ErrVotes = errors.New("approval: it has too many votes")

	errInvalid = errors.New("approval: a part is missing, too long or not UTF-8")
)

// Open returns the approval of a call that asks, with the digest and the times set. ID,
// Call, Rules, Rows and Config are the caller's. It is open as long as the shortest
// of its rules lets it be.
func Open(a Approval, rules Rules, now time.Time) (Approval, error) {
	var err error
	if a.Digest, err = a.Call.Digest(); err != nil {
		return Approval{}, err
	}
	if a.AnyThread, err = a.Call.anyThread(); err != nil {
		return Approval{}, err
	}
	a.Opened = stamp(now)
	for i, name := range a.Rules {
		rule, known := rules[name]
		if !known {
			return Approval{}, errInvalid
		}
		if until := a.Opened.Add(rule.Within); i == 0 || until.Before(a.Until) {
			a.Until = until
		}
	}
	return a, a.Validate()
}

// stamp is a time as all stores keep it.
func stamp(t time.Time) time.Time { return t.Truncate(time.Millisecond).UTC() }

// Validate returns an error unless every part is there and within its bounds.
func (a *Approval) Validate() error {
	ok := a.ID != "" && fits(a.ID, maxName) && !strings.ContainsAny(a.ID, " \x00") && len(a.Digest) == 64 && len(a.AnyThread) == 64 &&
		len(a.Arguments) <= MaxArguments &&
		len(a.Rules) > 0 && len(a.Rules) <= MaxRules && len(a.Rows) <= MaxRows && len(a.Votes) <= MaxVotes+1 && a.Until.After(a.Opened)
	for _, name := range []string{a.Principal, a.User} {
		ok = ok && fits(name, maxUser)
	}
	for _, name := range slices.Concat([]string{a.Workspace, a.Project, a.Agent, a.Thread, a.Tool, a.Version, a.Definition, a.AnswersDigest,
		a.Config, a.Ledger, a.Ran, a.Repeat.Key, a.Repeat.Digest}, a.Rules, a.Rows) {
		ok = ok && fits(name, maxName)
	}
	for i := range a.Votes {
		ok = ok && a.Votes[i].validate() == nil
	}
	if !ok || utf8.RuneCountInString(a.Ended.Reason) > MaxReason || len(a.Ended.By) > maxUser {
		return errInvalid
	}
	return nil
}

// fits reports whether a name can be written down as it is: JSON has no other texts than UTF-8.
func fits(name string, most int) bool { return len(name) <= most && utf8.ValidString(name) }

func (v *Vote) validate() error {
	if !fits(v.By, maxUser) || utf8.RuneCountInString(v.Reason) > MaxReason || len(v.Rules) == 0 || len(v.Rules) > MaxRules {
		return errInvalid
	}
	return nil
}

// SameQuestion returns nil if both ask the same, under the same id: a request that was
// repeated. Else it returns an error.
func (a *Approval) SameQuestion(b *Approval) error {
	if a.ID != b.ID || a.Key() != b.Key() || !a.Until.Equal(b.Until) {
		return errInvalid
	}
	return nil
}

// Key identifies the requests that one approval can answer: calls of the same digest that
// ask for the same rules. The digest holds the requester.
func (a *Approval) Key() string {
	names := slices.Clone(a.Rules)
	slices.Sort(names)
	return a.Digest + " " + strings.Join(slices.Compact(names), " ")
}

// Closes is when an approval can no longer be used, however the votes are counted: at Until,
// and not before Grace after its last yes.
func (a *Approval) Closes() time.Time { return a.closes(a.Votes) }

func (a *Approval) closes(votes []Vote) time.Time {
	at := a.Until
	for _, v := range votes {
		if graced := v.At.Add(Grace); v.Yes && graced.After(at) {
			at = graced
		}
	}
	return at
}

// Live reports whether the approval can still be voted on or used: nobody has ended it, no
// call was dispatched by it, and it is not over.
func (a *Approval) Live(now time.Time) bool { return a.usable(now) == nil }

// Votable reports whether the approval can still be decided: it is live, and takes a yes.
func (a *Approval) Votable(now time.Time) bool { return a.Live(now) && now.Before(a.Until) }

// usable returns why a call cannot be dispatched by the approval, as far as that does not
// depend on the rules: ErrUsed or ErrEnded.
func (a *Approval) usable(now time.Time) error {
	switch {
	case a.Ran != "":
		return ErrUsed
	case a.Ended.End != "", !now.Before(a.Closes()):
		return ErrEnded
	}
	return nil
}

// Stands reports whether the approval was denied, and the same call is denied for that
// without asking anew.
func (a *Approval) Stands(now time.Time) bool { return now.Before(a.StandsUntil()) }

// StandsUntil is until when a denial stands: until Until, and for MaxDenial at most. It is
// zero where there is none that stands.
func (a *Approval) StandsUntil() time.Time {
	until := a.Ended.At.Add(MaxDenial)
	switch {
	case a.Ended.End != EndDenied || a.Ended.Once:
		return time.Time{}
	case a.Until.Before(until):
		return a.Until
	}
	return until
}

// Over returns when Retention begins: once the approval has ended, and it could not be used
// if it had not. So no copy of it that has missed its end outlives the end.
func (a *Approval) Over() time.Time {
	over := a.Closes()
	for _, at := range []time.Time{a.RanAt, a.Ended.At} {
		if at.After(over) {
			over = at
		}
	}
	return over
}

// Outlived reports whether the approval has been kept for Retention.
func (a *Approval) Outlived(now time.Time) bool { return now.Sub(a.Over()) >= Retention }

// Cast adds a vote, or replaces that of the same voter. A no ends the approval. A vote after
// Until is refused, but a no is accepted as long as the approval can be used. The same vote
// again changes nothing, unless it counts for longer; same reports that. MayVote has decided whether the voter may vote.
func (a *Approval) Cast(v Vote, now time.Time) (same bool, err error) {
	v.At = stamp(now)
	if !v.Until.IsZero() {
		v.Until = stamp(v.Until)
	}
	switch i := slices.IndexFunc(a.Votes, func(cast Vote) bool { return cast.By == v.By }); {
	case v.Digest != a.Digest:
		return false, ErrDigest
	case v.validate() != nil:
		return false, errInvalid
	case i >= 0 && a.Votes[i].equal(v) && (a.Live(now) || a.Ran != "" || a.Ended.End == EndDenied):
		return true, nil
	case a.usable(now) != nil:
		return false, a.usable(now)
	case v.Yes && !now.Before(a.Until):
		return false, ErrEnded
	case i < 0 && v.Yes && len(a.Votes) >= MaxVotes:
		return false, ErrVotes
	case i >= 0:
		a.Votes = slices.Clone(a.Votes)
		a.Votes[i] = v
	default:
		a.Votes = append(a.Votes[:len(a.Votes):len(a.Votes)], v)
	}
	a.Revision++
	if !v.Yes {
		a.finish(Ending{End: EndDenied, By: v.By, At: v.At, Reason: v.Reason, Once: v.Once})
	}
	return false, nil
}

// equal reports whether a later vote of the same voter says the same and counts no longer,
// whenever they were cast.
func (v Vote) equal(w Vote) bool {
	return v.Yes == w.Yes && v.Reason == w.Reason && v.Remember == w.Remember && v.Once == w.Once && v.Caller == w.Caller &&
		slices.Equal(v.Rules, w.Rules) &&
		(v.Until.IsZero() || !w.Until.IsZero() && !w.Until.After(v.Until))
}

// Finish ends an approval that is live. EndExpired needs one that nobody has ended and whose
// time is over. EndDenied is for votes, and refused.
func (a *Approval) Finish(e Ending, now time.Time) error {
	e.At = stamp(now)
	switch over := !now.Before(a.Closes()); {
	case a.Ran != "":
		return ErrUsed
	case a.Ended.End != "", over != (e.End == EndExpired):
		return ErrEnded
	case e.End != EndWithdrawn && e.End != EndRevoked &&
		e.End != EndExpired, utf8.RuneCountInString(e.Reason) > MaxReason, len(e.By) > maxUser:
		return errInvalid
	}
	a.Revision++
	a.finish(e)
	return nil
}

func (a *Approval) finish(e Ending) { a.Ended, a.Arguments = e, nil }

// Use marks the approval as used by a call, in the transition that dispatches the call. It is
// refused if the approval was used or ended, or is over.
func (a *Approval) Use(call string, now time.Time) error {
	if err := a.usable(now); err != nil {
		return err
	}
	a.Ran, a.RanAt, a.Arguments = call, stamp(now), nil
	a.Revision++
	return nil
}

// Merge returns an approval with what two copies of it say, where one of them has missed
// changes of the other. A use is stronger than an end, and a denial stronger than others; of
// two votes of one person the later holds.
func Merge(a, b Approval) Approval {
	merged := a
	merged.Votes = slices.Clone(a.Votes)
	for _, v := range b.Votes {
		switch i := slices.IndexFunc(merged.Votes, func(w Vote) bool { return w.By == v.By }); {
		case i < 0 && len(merged.Votes) < MaxVotes:
			merged.Votes = append(merged.Votes, v)
		case i >= 0 && v.At.After(merged.Votes[i].At):
			merged.Votes[i] = v
		}
	}
	if a.Ended.End == "" || b.Ended.End == EndDenied && a.Ended.End != EndDenied {
		merged.Ended = b.Ended
	}
	if merged.Ran == "" {
		merged.Ran, merged.RanAt = b.Ran, b.RanAt
	}
	if merged.Ran != "" {
		merged.Ended = Ending{}
	}
	if merged.Ran != "" || merged.Ended.End != "" {
		merged.Arguments = nil
	}
	if merged.Ended != a.Ended || merged.Ran != a.Ran || !slices.EqualFunc(merged.Votes, a.Votes, Vote.same) {
		merged.Revision = max(a.Revision, b.Revision) + 1
	}
	return merged
}

func (v Vote) same(w Vote) bool { return v.By == w.By && v.At.Equal(w.At) }
