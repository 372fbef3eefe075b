package toolimport

import (
	"regexp"
	"strings"

	"github.com/callgate/callgate/configs/document"
)

// NoteGroup holds the notes of one kind.
type NoteGroup struct {
	Kind  string // the message, with … for names, pointers and values
	Notes []*document.Fault
}

// GroupNotes groups notes by their kind. Groups are in the order of their first note, and notes in the order
// that they have.
func GroupNotes(notes []*document.Fault) []NoteGroup {
	var groups []NoteGroup
	at := map[string]int{}
	for _, note := range notes {
		kind := kindOf(note.Message)
		i, known := at[kind]
		if !known {
			i = len(groups)
			at[kind] = i
			groups = append(groups, NoteGroup{Kind: kind})
		}
		groups[i].Notes = append(groups[i].Notes, note)
	}
	return groups
}

var (
	quotedText  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	operationOf = regexp.MustCompile(`^[A-Z]+ /[^:]*(?::[^ :][^:]*)*: `)
	pointerAt   = regexp.MustCompile(`( at) /[^ ]*:`)
)

// kindOf is a message without what it says of one tool alone.
func kindOf(message string) string {
	if at := strings.Index(message, ": found that the credential "); at >= 0 {
		message = message[at+len(": "):] // the names of tools stand before it
	}
	message = strings.TrimPrefix((&document.Fault{Message: message}).Error(), ": ") // nothing in it is invisible
	message = quotedText.ReplaceAllLiteralString(message, "…")
	message = strings.TrimPrefix(message, "tool …: ")
	message = operationOf.ReplaceAllLiteralString(message, "")
	return pointerAt.ReplaceAllString(message, "$1 …:")
}
