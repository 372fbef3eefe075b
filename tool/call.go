package tool

import (
	"encoding/json"
	"time"
)

// Call is one call of a tool, after every check.
type Call struct {
	Tool    string // the registry's name
	Version string
	Effect  string // read or idempotent; anything else is run as once
	Run     Run
	// Arguments is the JSON object that was validated. It is sent byte for byte.
	Arguments []byte
	// Typed says that the tool has an output schema: its result is the structured
	// content alone.
	Typed bool
	ID    string   // the call id; the tool sees it
	Roots []string // absolute folders of the project
	// Thread is the conversation as the tool is to know it, Ancestors the conversations it
	// branched from, oldest first, and User the end user. Each may be empty.
	Thread    string
	Ancestors []string
	User      string
	// Stopper says by an error that the call was stopped since it began: it is not sent again then. It may be nil.
	Stopper interface{ Stopped() error }
	// Caller is who makes the call, where the credential exchanges its token; nil: it has none.
	Caller *Caller
	// Progress receives the tool's progress reports. If it is nil, none are requested.
	// Calls to it never overlap, and end before Run returns. It must not block.
	Progress func(Progress)
	// Log receives what the tool logs at LogLevel (one of LogLevels) and above. If
	// either is empty, no log is requested. It is called as Progress is, and the two
	// never overlap.
	Log      func(Log)
	LogLevel string
	// QuestionKinds lists the kinds of questions that the tool may ask the caller: form, url,
	// sampling and roots. If it is empty, the caller cannot answer questions.
	QuestionKinds []string
	// State and Answers return to a tool that asked: the state it sent, nil if it sent
	// none, and the validated answers by the names of its questions.
	State   *string
	Answers map[string]json.RawMessage
}

// IsStopped reports whether the call was stopped since it began.
func (c *Call) IsStopped() bool { return c.Stopper != nil && c.Stopper.Stopped() != nil }

// Progress is one progress report of a tool.
type Progress struct {
	Done    float64 // finite, and greater with each report
	Total   float64 // finite; 0 if unknown
	Message string  // the tool's text; may be empty
}

// Log is one log message of a tool.
type Log struct {
	Level  string          // one of LogLevels
	Logger string          // the tool's name for the source; may be empty
	Data   json.RawMessage // any JSON, read strictly
}

// InputRequired holds the questions that a tool asks before it continues. Its questions are
// of the kinds that the call allows, and are not validated further.
type InputRequired struct {
	Questions []Question `json:"questions"`       // sorted by name
	State     *string    `json:"state,omitempty"` // returns with the answers
}

// The kinds of questions.
const (
	QuestionForm     = "form"
	QuestionURL      = "url"
	QuestionSampling = "sampling"
	QuestionRoots    = "roots"
)

// QuestionKinds returns all kinds of questions, in their order.
func QuestionKinds() []string {
	return []string{QuestionForm, QuestionURL, QuestionSampling, QuestionRoots}
}

// Question is one question of a tool, with the method and parameters of MCP.
type Question struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"` // one of QuestionKinds
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"` // one JSON object, read strictly
}

// Challenge is an authorization that a tool's server requires of a person. ID and URL
// are the server's; the URL is checked and never fetched.
type Challenge struct {
	ID  string `json:"id"`
	URL string `json:"url"` // where the person goes
	// CheckURL reports the state of the authorization; empty if the server names none.
	CheckURL string `json:"check_url,omitempty"`
}

// Result is the result of a tool.
type Result struct {
	Body []byte
	// JSON says that the content type of Body is JSON, which was not parsed. Otherwise
	// Body is UTF-8 text.
	JSON bool
	// Attempts counts the attempts, also where an error is returned with the result; 0
	// if there was none.
	Attempts int
	// Pending says that the tool accepted the call and answers later, by Until. The
	// result has no body then. If Until is zero, it is the end of the tool's timeout.
	Pending bool
	Until   time.Time
	// Challenges come with an error that a person can resolve.
	Challenges []Challenge
	// InputRequired comes with an error that answers can resolve.
	InputRequired *InputRequired
}
