-- Purpose: the words of a long turn stand in its row, where they are read without a second look-up.

alter table bot_private.turn_words alter column words set storage main;
