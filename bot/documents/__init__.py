"""Reading Feishu's documents as a person: links, contents by section, search. Nothing is kept."""
