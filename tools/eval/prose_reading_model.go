package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// words is a model that reads the member message alone, as English: it looks for the names, the
// form and the requirements that the sentences hold. Where the message says that more faults are
// listed in violations, it reads the sentences there. It knows no codes and no form of a call
// but one that it has used or read.
type words struct{ *speaker }

// NewWords returns the model that reads sentences alone, after its first completion.
func NewWords(intent Intent, completion string) Model { return words{newSpeaker(intent, completion)} }

var (
	formSentence      = regexp.MustCompile(`Send .* as (\{.*\}\}\})`)
	objectSentence    = regexp.MustCompile(`^"tool" must be an object, [^{]*(\{.*\})`)
	againSentence     = regexp.MustCompile(`Send (it|the call|the tool call|the whole call) (again|alone)|Write it with `)
	shorterSentence   = regexp.MustCompile(`in fewer bytes`)
	argumentSentence  = regexp.MustCompile(`^Argument ("(?:[^"\\]|\\.)*") (.*)`)
	surplusSentence   = regexp.MustCompile(`^("(?:[^"\\]|\\.)*") is not part of ("tool"|a tool call)\.`)
	missingSentence   = regexp.MustCompile(`^"(name|arguments)" is missing in "tool"\.`)
	envelopeSentence  = regexp.MustCompile(`^"(tool|name|arguments|agent)" must be `)
	meantSentence     = regexp.MustCompile(`Did you mean ([^?]*)\?`)
	exactNameSentence = regexp.MustCompile(`Use the exact name of a tool that you were given`)
	ownAgentSentence  = regexp.MustCompile(`your own agent's name`)
	waitSentence      = regexp.MustCompile(`wait (?:about )?(\d+) ms, .*then send the same call again`)
	lessSentence      = regexp.MustCompile(`(?i)ask (it )?for less\.|check the arguments before calling it again`)
	onceSentence      = regexp.MustCompile(`\. Send it once\.`)
	futileSentence    = regexp.MustCompile(`(?i)trying again will not change (it|that)|changing the call will not help|the operator must|cannot be made here|` +
		`continue without (it|its result)\b|do not ask for the same again|before asking for it again|say (so|that it waits|what you cannot do)\b|call no other tool`)
)

func (m words) Next(heard []byte) Reply {
	var line heardError
	if json.Unmarshal(heard, &line) != nil {
		return Reply{Completion: m.last}
	}
	e := &line.Result.Output.Error
	if found := waitSentence.FindStringSubmatch(e.Message); found != nil {
		ms, _ := strconv.Atoi(found[1]) // digits
		return Reply{m.last, time.Duration(ms) * time.Millisecond}
	}
	if !strings.Contains(e.Message, "listed in violations") {
		m.read(e.Message)
		return Reply{Completion: m.last}
	}
	for _, v := range e.Violations {
		m.read(v.Message)
	}
	return Reply{Completion: m.last}
}

// read does what a message asks for.
func (m words) read(message string) {
	switch {
	case onceSentence.MatchString(message): // the same, alone
	case lessSentence.MatchString(message):
		if !m.shorten() {
			m.say(cannot)
		}
	case futileSentence.MatchString(message):
		m.say(cannot)
	case argumentSentence.MatchString(message):
		found := argumentSentence.FindStringSubmatch(message)
		if !m.correctArgument(found[1], found[2]) {
			m.say(cannot)
		}
	case m.correctEnvelope(message):
	case meantSentence.MatchString(message):
		name, _, _ := strings.Cut(meantSentence.FindStringSubmatch(message)[1], " or ")
		m.set([]string{"tool", "name"}, name)
	case exactNameSentence.MatchString(message) && len(m.intent.Given) > 0:
		m.set([]string{"tool", "name"}, m.intent.Given[0])
	case ownAgentSentence.MatchString(message):
		m.envelope([]string{"agent"})
	case shorterSentence.MatchString(message):
		m.shorten()
	case formSentence.MatchString(message):
		m.rewrite(formSentence.FindStringSubmatch(message)[1])
	case againSentence.MatchString(message):
		m.rewrite("")
	default:
		return
	}
	m.sayCall()
}

// correctEnvelope reports whether a message is about the members around the arguments.
func (m words) correctEnvelope(message string) bool {
	if found := surplusSentence.FindStringSubmatch(message); found != nil {
		at := []string{unquote(found[1])}
		if found[2] == `"tool"` {
			at = append([]string{"tool"}, at...)
		}
		m.drop(at)
		return true
	}
	if found := missingSentence.FindStringSubmatch(message); found != nil {
		return m.envelope([]string{"tool", found[1]})
	}
	if found := objectSentence.FindStringSubmatch(message); found != nil {
		m.rewrite(`{"tool":` + found[1] + `}`)
		return true
	}
	found := envelopeSentence.FindStringSubmatch(message)
	switch {
	case found == nil:
		return false
	case found[1] == "agent":
		return m.envelope([]string{"agent"})
	}
	return m.envelope([]string{"tool", found[1]})
}

// correctArgument changes the argument that a message names, as the rest of it says. It reports
// false where the model has nothing else to say there.
func (m words) correctArgument(quoted, problem string) bool {
	tokens := strings.FieldsFunc(unquote(quoted), func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	at := append(slices.Clone(argumentsPath), tokens...)
	first, rest, _ := strings.Cut(problem, ". ")
	first = strings.TrimSuffix(first, ".")
	switch {
	case strings.HasPrefix(first, "is not part of "):
		if meant := meantSentence.FindStringSubmatch(rest); meant != nil {
			m.rename(at, unquote(meant[1]))
		} else {
			m.drop(at)
		}
		return true
	case strings.HasPrefix(first, "is outside this project"):
		return m.next(at)
	}
	for _, value := range m.values(at) {
		if meets(value, first) {
			m.set(at, value)
			return true
		}
	}
	return false
}

var (
	quotedPart  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	kindPart    = regexp.MustCompile(`\ban? (string|integer|number|boolean|array|object)\b`)
	numberPart  = regexp.MustCompile(`(at least|at most|greater than|less than) (-?[0-9.]+)( characters?| items?)?`)
	rangePart   = regexp.MustCompile(`of ([0-9]+) to ([0-9]+) characters`)
	patternPart = regexp.MustCompile(`(?:match the pattern|that matches) (\S+)`)
)

// meets reports whether a value is what a sentence asks for, as far as the sentence says.
func meets(value any, sentence string) bool {
	wanted, _, _ := strings.Cut(sentence, ", not ")
	if kind := kindPart.FindStringSubmatch(wanted); kind != nil && !isKind(value, kind[1]) {
		return false
	}
	if strings.Contains(wanted, "one of ") && !slices.ContainsFunc(quotedPart.FindAllString(wanted, -1), func(quoted string) bool {
		return encode(value) == quoted
	}) {
		return false
	}
	for _, bound := range numberPart.FindAllStringSubmatch(wanted, -1) {
		if limit, err := strconv.ParseFloat(bound[2], 64); err == nil && !within(size(value), bound[1], limit) {
			return false
		}
	}
	if bounds := rangePart.FindStringSubmatch(wanted); bounds != nil {
		least, _ := strconv.ParseFloat(bounds[1], 64) // digits
		most, _ := strconv.ParseFloat(bounds[2], 64)
		if n := size(value); n < least || n > most {
			return false
		}
	}
	if found := patternPart.FindStringSubmatch(wanted); found != nil {
		text, isText := value.(string)
		pattern, err := regexp.Compile(found[1])
		return err != nil || isText && pattern.MatchString(text)
	}
	return true
}

func isKind(value any, kind string) bool {
	switch v := value.(type) {
	case string:
		return kind == "string"
	case json.Number:
		return kind == "number" || kind == "integer" && !strings.ContainsAny(v.String(), ".eE")
	case bool:
		return kind == "boolean"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// size is what a bound counts: a number itself, or characters, items or members.
func size(value any) float64 {
	switch v := value.(type) {
	case json.Number:
		n, _ := v.Float64() // one out of range is infinite
		return n
	case string:
		return float64(len([]rune(v)))
	case []any:
		return float64(len(v))
	case map[string]any:
		return float64(len(v))
	}
	return 0
}

func within(n float64, bound string, limit float64) bool {
	switch bound {
	case "at least":
		return n >= limit
	case "at most":
		return n <= limit
	case "greater than":
		return n > limit
	}
	return n < limit
}

func unquote(quoted string) string {
	text, _ := decode(quoted).(string)
	return text
}

// stubborn is a model that does not listen.
type stubborn struct{ completion string }

// NewStubborn returns the model that repeats its first completion.
func NewStubborn(_ Intent, completion string) Model { return stubborn{completion} }

func (m stubborn) Next([]byte) Reply { return Reply{Completion: m.completion} }
