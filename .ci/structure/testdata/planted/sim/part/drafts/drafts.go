package drafts

type Drafts struct{ next *Drafts }
