package audit

import (
	"fmt"
	"io"
	"path/filepath"
)

// WriteReport writes for people whether each chain is intact, and reports whether all are.
// With several chains, each line begins with the folder of its chain. Errors of writing
// are left to the writer.
func WriteReport(w io.Writer, chains []Chain) bool {
	intact := true
	for _, c := range chains {
		of := ""
		if len(chains) > 1 {
			of = filepath.Dir(c.Files[len(c.Files)-1]) + ": "
		}
		if c.Corruption != nil {
			intact = false
			fmt.Fprintf(w, "%sbroken: %v\n%s%d records before it hold\n", of, c.Corruption, of, c.Records)
			continue
		}
		fmt.Fprintf(w, "%sthe chain holds: %d records, seq %d to %d, last hash %s\n", of, c.Records, c.FirstSeq, c.LastSeq, c.LastHash)
		if c.TruncatedBytes > 0 {
			fmt.Fprintf(w, "%s%d bytes of an incomplete line follow: a write that was cut short or is under way\n", of, c.TruncatedBytes)
		}
		if c.ID == "" {
			continue
		}
		if c.FirstSeq > 1 {
			fmt.Fprintf(w, "%sthe %d records before seq %d are not here; a head signs where they ended\n", of, c.FirstSeq-1, c.FirstSeq)
		}
		fmt.Fprintf(w, "%ssigned: chain %s, %d heads, up to seq %d; no head covers the %d records behind it\n",
			of, c.ID, c.Checkpoints, c.SignedSeq, max(c.LastSeq, c.SignedSeq)-c.SignedSeq)
	}
	return intact
}
