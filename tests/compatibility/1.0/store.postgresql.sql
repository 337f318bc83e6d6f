SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.keep_dispute_entries() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF TG_OP = 'UPDATE' OR TRUE THEN RAISE EXCEPTION 'dispute_entries is append-only' USING ERRCODE = 'restrict_violation'; END IF; RETURN old; END $$;
CREATE FUNCTION public.keep_disputes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF TG_OP = 'UPDATE' OR TRUE THEN RAISE EXCEPTION 'disputes is append-only' USING ERRCODE = 'restrict_violation'; END IF; RETURN old; END $$;
CREATE FUNCTION public.keep_guidelines() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF TG_OP = 'UPDATE' OR EXISTS (SELECT 1 FROM label_events WHERE label_events.campaign_id = old.campaign_id) THEN RAISE EXCEPTION 'guidelines is append-only' USING ERRCODE = 'restrict_violation'; END IF; RETURN old; END $$;
CREATE FUNCTION public.keep_label_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN IF TG_OP = 'UPDATE' OR NOT EXISTS (SELECT 1 FROM campaigns WHERE campaigns.id = old.campaign_id AND campaigns.closed IS NOT NULL AND campaigns.exported IS NOT NULL) THEN RAISE EXCEPTION 'label_events is append-only' USING ERRCODE = 'restrict_violation'; END IF; RETURN old; END $$;
CREATE FUNCTION public.note_deleted_traces() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN UPDATE datasets SET revision = revision + 1 WHERE id IN (SELECT dataset_id FROM gone); RETURN NULL; END $$;
CREATE FUNCTION public.search_form(text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$ SELECT regexp_replace(regexp_replace(CASE WHEN octet_length($1) = char_length($1) THEN $1 ELSE normalize(translate($1, U&'\+00FF01\+00FF02\+00FF03\+00FF04\+00FF05\+00FF06\+00FF07\+00FF08\+00FF09\+00FF0A\+00FF0B\+00FF0C\+00FF0D\+00FF0E\+00FF0F\+00FF10\+00FF11\+00FF12\+00FF13\+00FF14\+00FF15\+00FF16\+00FF17\+00FF18\+00FF19\+00FF1A\+00FF1B\+00FF1C\+00FF1D\+00FF1E\+00FF1F\+00FF20\+00FF21\+00FF22\+00FF23\+00FF24\+00FF25\+00FF26\+00FF27\+00FF28\+00FF29\+00FF2A\+00FF2B\+00FF2C\+00FF2D\+00FF2E\+00FF2F\+00FF30\+00FF31\+00FF32\+00FF33\+00FF34\+00FF35\+00FF36\+00FF37\+00FF38\+00FF39\+00FF3A\+00FF3B\+00FF3C\+00FF3D\+00FF3E\+00FF3F\+00FF40\+00FF41\+00FF42\+00FF43\+00FF44\+00FF45\+00FF46\+00FF47\+00FF48\+00FF49\+00FF4A\+00FF4B\+00FF4C\+00FF4D\+00FF4E\+00FF4F\+00FF50\+00FF51\+00FF52\+00FF53\+00FF54\+00FF55\+00FF56\+00FF57\+00FF58\+00FF59\+00FF5A\+00FF5B\+00FF5C\+00FF5D\+00FF5E\+000660\+000661\+000662\+000663\+000664\+000665\+000666\+000667\+000668\+000669\+0006F0\+0006F1\+0006F2\+0006F3\+0006F4\+0006F5\+0006F6\+0006F7\+0006F8\+0006F9\+000966\+000967\+000968\+000969\+00096A\+00096B\+00096C\+00096D\+00096E\+00096F\+0009E6\+0009E7\+0009E8\+0009E9\+0009EA\+0009EB\+0009EC\+0009ED\+0009EE\+0009EF\+000A66\+000A67\+000A68\+000A69\+000A6A\+000A6B\+000A6C\+000A6D\+000A6E\+000A6F\+000AE6\+000AE7\+000AE8\+000AE9\+000AEA\+000AEB\+000AEC\+000AED\+000AEE\+000AEF\+000B66\+000B67\+000B68\+000B69\+000B6A\+000B6B\+000B6C\+000B6D\+000B6E\+000B6F\+000BE6\+000BE7\+000BE8\+000BE9\+000BEA\+000BEB\+000BEC\+000BED\+000BEE\+000BEF\+000C66\+000C67\+000C68\+000C69\+000C6A\+000C6B\+000C6C\+000C6D\+000C6E\+000C6F\+000CE6\+000CE7\+000CE8\+000CE9\+000CEA\+000CEB\+000CEC\+000CED\+000CEE\+000CEF\+000D66\+000D67\+000D68\+000D69\+000D6A\+000D6B\+000D6C\+000D6D\+000D6E\+000D6F\+000E50\+000E51\+000E52\+000E53\+000E54\+000E55\+000E56\+000E57\+000E58\+000E59\+01D7CE\+01D7CF\+01D7D0\+01D7D1\+01D7D2\+01D7D3\+01D7D4\+01D7D5\+01D7D6\+01D7D7\+01D7D8\+01D7D9\+01D7DA\+01D7DB\+01D7DC\+01D7DD\+01D7DE\+01D7DF\+01D7E0\+01D7E1\+01D7E2\+01D7E3\+01D7E4\+01D7E5\+01D7E6\+01D7E7\+01D7E8\+01D7E9\+01D7EA\+01D7EB\+01D7EC\+01D7ED\+01D7EE\+01D7EF\+01D7F0\+01D7F1\+01D7F2\+01D7F3\+01D7F4\+01D7F5\+01D7F6\+01D7F7\+01D7F8\+01D7F9\+01D7FA\+01D7FB\+01D7FC\+01D7FD\+01D7FE\+01D7FF\+002010\+002011\+002012\+002013\+002014\+002015\+002043\+002212\+002796\+00FE58\+00FE63\+002018\+002019\+00201A\+00201B\+002032\+002035\+0002B9\+000374\+0002BB\+0002BC\+0002C8\+0000B4\+001FFD\+00201C\+00201D\+00201E\+00201F\+002033\+002036\+0000AB\+0000BB\+00301D\+00301E\+0000D7\+002715\+002716\+002A09\+002A2F\+0000B7\+000387\+002219\+0022C5\+002022\+002217\+0000F7\+002044\+002215\+002797\+002236\+00A789\+00FE55\+0000A0\+001680\+002000\+002001\+002002\+002003\+002004\+002005\+002006\+002007\+002008\+002009\+00200A\+00202F\+00205F\+003000\+003002\+00FF61\+003001\+00061B\+00066B\+00066C\+00066A\+00FFE1\+00FFE5\+00FFE0\+00FFE6\+0000AD\+00034F\+00061C\+00180E\+00200B\+00200C\+00200D\+00200E\+00200F\+00202A\+00202B\+00202C\+00202D\+00202E\+002060\+002061\+002062\+002063\+002064\+002066\+002067\+002068\+002069\+00FE0E\+00FE0F\+00FEFF', U&'\+000021\+000022\+000023\+000024\+000025\+000026\+000027\+000028\+000029\+00002A\+00002B\+00002C\+00002D\+00002E\+00002F\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+00003A\+00003B\+00003C\+00003D\+00003E\+00003F\+000040\+000041\+000042\+000043\+000044\+000045\+000046\+000047\+000048\+000049\+00004A\+00004B\+00004C\+00004D\+00004E\+00004F\+000050\+000051\+000052\+000053\+000054\+000055\+000056\+000057\+000058\+000059\+00005A\+00005B\+00005C\+00005D\+00005E\+00005F\+000027\+000061\+000062\+000063\+000064\+000065\+000066\+000067\+000068\+000069\+00006A\+00006B\+00006C\+00006D\+00006E\+00006F\+000070\+000071\+000072\+000073\+000074\+000075\+000076\+000077\+000078\+000079\+00007A\+00007B\+00007C\+00007D\+00007E\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000022\+000022\+000022\+000022\+000022\+000022\+000022\+000022\+000022\+000022\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002F\+00002F\+00002F\+00002F\+00003A\+00003A\+00003A\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+00002E\+00002E\+00002C\+00003B\+00002E\+00002C\+000025\+0000A3\+0000A5\+0000A2\+0020A9'), NFC) END, '[\u0020\u0009\u000A\u000B\u000C\u000D\u0085\u2028\u2029]+', ' ', 'g'), ' ?([\u002B\u002D\u002A\u002F\u003D\u003C\u003E\u005E\u007E\u00B1\u2213\u2264\u2265\u2260\u2248\u2261\u2192\u21D2\u0028\u0029\u005B\u005D\u007B\u007D\u007C\u005C\u002C\u003B\u003A\u0021\u003F\u0025\u0022\u0024\u20AC\u00A3\u00A5\u20B9\u00A2\u20A9\u20BD\u20BA\u20AA\u20B4\u20A6\u20AB\u0E3F\u20B1\u20A1\u20B2\u20B5\u20B8\u20BC\u20BF\uFF04\uFFE1\uFFE5\uFFE0\uFFE6]) ?', '\1', 'g') $_$;
CREATE FUNCTION public.search_trigrams(text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $_$ SELECT coalesce(array_agg(DISTINCT substr(form, i, 3)), '{}') FROM (SELECT lower(regexp_replace(regexp_replace(CASE WHEN octet_length($1) = char_length($1) THEN $1 ELSE normalize(translate($1, U&'\+00FF01\+00FF02\+00FF03\+00FF04\+00FF05\+00FF06\+00FF07\+00FF08\+00FF09\+00FF0A\+00FF0B\+00FF0C\+00FF0D\+00FF0E\+00FF0F\+00FF10\+00FF11\+00FF12\+00FF13\+00FF14\+00FF15\+00FF16\+00FF17\+00FF18\+00FF19\+00FF1A\+00FF1B\+00FF1C\+00FF1D\+00FF1E\+00FF1F\+00FF20\+00FF21\+00FF22\+00FF23\+00FF24\+00FF25\+00FF26\+00FF27\+00FF28\+00FF29\+00FF2A\+00FF2B\+00FF2C\+00FF2D\+00FF2E\+00FF2F\+00FF30\+00FF31\+00FF32\+00FF33\+00FF34\+00FF35\+00FF36\+00FF37\+00FF38\+00FF39\+00FF3A\+00FF3B\+00FF3C\+00FF3D\+00FF3E\+00FF3F\+00FF40\+00FF41\+00FF42\+00FF43\+00FF44\+00FF45\+00FF46\+00FF47\+00FF48\+00FF49\+00FF4A\+00FF4B\+00FF4C\+00FF4D\+00FF4E\+00FF4F\+00FF50\+00FF51\+00FF52\+00FF53\+00FF54\+00FF55\+00FF56\+00FF57\+00FF58\+00FF59\+00FF5A\+00FF5B\+00FF5C\+00FF5D\+00FF5E\+000660\+000661\+000662\+000663\+000664\+000665\+000666\+000667\+000668\+000669\+0006F0\+0006F1\+0006F2\+0006F3\+0006F4\+0006F5\+0006F6\+0006F7\+0006F8\+0006F9\+000966\+000967\+000968\+000969\+00096A\+00096B\+00096C\+00096D\+00096E\+00096F\+0009E6\+0009E7\+0009E8\+0009E9\+0009EA\+0009EB\+0009EC\+0009ED\+0009EE\+0009EF\+000A66\+000A67\+000A68\+000A69\+000A6A\+000A6B\+000A6C\+000A6D\+000A6E\+000A6F\+000AE6\+000AE7\+000AE8\+000AE9\+000AEA\+000AEB\+000AEC\+000AED\+000AEE\+000AEF\+000B66\+000B67\+000B68\+000B69\+000B6A\+000B6B\+000B6C\+000B6D\+000B6E\+000B6F\+000BE6\+000BE7\+000BE8\+000BE9\+000BEA\+000BEB\+000BEC\+000BED\+000BEE\+000BEF\+000C66\+000C67\+000C68\+000C69\+000C6A\+000C6B\+000C6C\+000C6D\+000C6E\+000C6F\+000CE6\+000CE7\+000CE8\+000CE9\+000CEA\+000CEB\+000CEC\+000CED\+000CEE\+000CEF\+000D66\+000D67\+000D68\+000D69\+000D6A\+000D6B\+000D6C\+000D6D\+000D6E\+000D6F\+000E50\+000E51\+000E52\+000E53\+000E54\+000E55\+000E56\+000E57\+000E58\+000E59\+01D7CE\+01D7CF\+01D7D0\+01D7D1\+01D7D2\+01D7D3\+01D7D4\+01D7D5\+01D7D6\+01D7D7\+01D7D8\+01D7D9\+01D7DA\+01D7DB\+01D7DC\+01D7DD\+01D7DE\+01D7DF\+01D7E0\+01D7E1\+01D7E2\+01D7E3\+01D7E4\+01D7E5\+01D7E6\+01D7E7\+01D7E8\+01D7E9\+01D7EA\+01D7EB\+01D7EC\+01D7ED\+01D7EE\+01D7EF\+01D7F0\+01D7F1\+01D7F2\+01D7F3\+01D7F4\+01D7F5\+01D7F6\+01D7F7\+01D7F8\+01D7F9\+01D7FA\+01D7FB\+01D7FC\+01D7FD\+01D7FE\+01D7FF\+002010\+002011\+002012\+002013\+002014\+002015\+002043\+002212\+002796\+00FE58\+00FE63\+002018\+002019\+00201A\+00201B\+002032\+002035\+0002B9\+000374\+0002BB\+0002BC\+0002C8\+0000B4\+001FFD\+00201C\+00201D\+00201E\+00201F\+002033\+002036\+0000AB\+0000BB\+00301D\+00301E\+0000D7\+002715\+002716\+002A09\+002A2F\+0000B7\+000387\+002219\+0022C5\+002022\+002217\+0000F7\+002044\+002215\+002797\+002236\+00A789\+00FE55\+0000A0\+001680\+002000\+002001\+002002\+002003\+002004\+002005\+002006\+002007\+002008\+002009\+00200A\+00202F\+00205F\+003000\+003002\+00FF61\+003001\+00061B\+00066B\+00066C\+00066A\+00FFE1\+00FFE5\+00FFE0\+00FFE6\+0000AD\+00034F\+00061C\+00180E\+00200B\+00200C\+00200D\+00200E\+00200F\+00202A\+00202B\+00202C\+00202D\+00202E\+002060\+002061\+002062\+002063\+002064\+002066\+002067\+002068\+002069\+00FE0E\+00FE0F\+00FEFF', U&'\+000021\+000022\+000023\+000024\+000025\+000026\+000027\+000028\+000029\+00002A\+00002B\+00002C\+00002D\+00002E\+00002F\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+00003A\+00003B\+00003C\+00003D\+00003E\+00003F\+000040\+000041\+000042\+000043\+000044\+000045\+000046\+000047\+000048\+000049\+00004A\+00004B\+00004C\+00004D\+00004E\+00004F\+000050\+000051\+000052\+000053\+000054\+000055\+000056\+000057\+000058\+000059\+00005A\+00005B\+00005C\+00005D\+00005E\+00005F\+000027\+000061\+000062\+000063\+000064\+000065\+000066\+000067\+000068\+000069\+00006A\+00006B\+00006C\+00006D\+00006E\+00006F\+000070\+000071\+000072\+000073\+000074\+000075\+000076\+000077\+000078\+000079\+00007A\+00007B\+00007C\+00007D\+00007E\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+000030\+000031\+000032\+000033\+000034\+000035\+000036\+000037\+000038\+000039\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+00002D\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000027\+000022\+000022\+000022\+000022\+000022\+000022\+000022\+000022\+000022\+000022\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002A\+00002F\+00002F\+00002F\+00002F\+00003A\+00003A\+00003A\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+000020\+00002E\+00002E\+00002C\+00003B\+00002E\+00002C\+000025\+0000A3\+0000A5\+0000A2\+0020A9'), NFC) END, '[\u0020\u0009\u000A\u000B\u000C\u000D\u0085\u2028\u2029]+', ' ', 'g'), ' ?([\u002B\u002D\u002A\u002F\u003D\u003C\u003E\u005E\u007E\u00B1\u2213\u2264\u2265\u2260\u2248\u2261\u2192\u21D2\u0028\u0029\u005B\u005D\u007B\u007D\u007C\u005C\u002C\u003B\u003A\u0021\u003F\u0025\u0022\u0024\u20AC\u00A3\u00A5\u20B9\u00A2\u20A9\u20BD\u20BA\u20AA\u20B4\u20A6\u20AB\u0E3F\u20B1\u20A1\u20B2\u20B5\u20B8\u20BC\u20BF\uFF04\uFFE1\uFFE5\uFFE0\uFFE6]) ?', '\1', 'g')) AS form OFFSET 0) AS forms, generate_series(1, char_length(form) - 2) AS i $_$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.calibrations (
    id integer NOT NULL,
    evaluator_id integer NOT NULL,
    dataset_id integer,
    dataset character varying(200) NOT NULL,
    validity double precision NOT NULL,
    redundancy double precision NOT NULL,
    info json NOT NULL,
    created timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.calibrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.calibrations_id_seq OWNED BY public.calibrations.id;
CREATE TABLE public.campaign_annotators (
    campaign_id integer NOT NULL,
    user_id integer NOT NULL,
    added timestamp with time zone NOT NULL,
    added_by integer NOT NULL
);
CREATE TABLE public.campaign_items (
    id integer NOT NULL,
    campaign_id integer NOT NULL,
    trace_id integer NOT NULL,
    digest character varying(64) NOT NULL,
    place integer NOT NULL,
    chosen character varying(20) NOT NULL,
    text_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT ck_campaign_items_chosen CHECK (((chosen)::text = ANY ((ARRAY['ordered'::character varying, 'random'::character varying, 'gold'::character varying])::text[])))
);
CREATE SEQUENCE public.campaign_items_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.campaign_items_id_seq OWNED BY public.campaign_items.id;
CREATE TABLE public.campaigns (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    dataset_id integer NOT NULL,
    evaluator_id integer,
    settings json NOT NULL,
    blind boolean NOT NULL,
    created timestamp with time zone NOT NULL,
    created_by integer NOT NULL,
    closed timestamp with time zone,
    restricted boolean NOT NULL,
    exported integer
);
CREATE SEQUENCE public.campaigns_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.campaigns_id_seq OWNED BY public.campaigns.id;
CREATE TABLE public.datasets (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    kind character varying(200) NOT NULL,
    source text NOT NULL,
    sha256 character varying(64) NOT NULL,
    created timestamp with time zone NOT NULL,
    revision integer DEFAULT 0 NOT NULL
);
CREATE SEQUENCE public.datasets_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.datasets_id_seq OWNED BY public.datasets.id;
CREATE TABLE public.deleted (
    name character varying(600) NOT NULL
);
CREATE TABLE public.dispute_entries (
    id integer NOT NULL,
    dispute_id integer NOT NULL,
    user_id integer NOT NULL,
    state character varying(20),
    text text NOT NULL,
    moment timestamp with time zone NOT NULL,
    CONSTRAINT ck_dispute_entries_state CHECK (((state)::text = ANY ((ARRAY['open'::character varying, 'accepted'::character varying, 'rejected'::character varying, 'withdrawn'::character varying])::text[])))
);
CREATE SEQUENCE public.dispute_entries_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.dispute_entries_id_seq OWNED BY public.dispute_entries.id;
CREATE TABLE public.disputes (
    id integer NOT NULL,
    trace_id integer NOT NULL,
    digest character varying(64) NOT NULL,
    step integer NOT NULL,
    gold character varying(20),
    proposed character varying(20),
    reason text NOT NULL,
    user_id integer NOT NULL,
    moment timestamp with time zone NOT NULL,
    CONSTRAINT ck_disputes_step CHECK ((step >= 0))
);
CREATE SEQUENCE public.disputes_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.disputes_id_seq OWNED BY public.disputes.id;
CREATE TABLE public.evaluators (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    fingerprint character varying(200) NOT NULL,
    format character varying(200) NOT NULL,
    attention character varying(200) NOT NULL,
    info json NOT NULL,
    created timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.evaluators_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.evaluators_id_seq OWNED BY public.evaluators.id;
CREATE TABLE public.failed_logins (
    id integer NOT NULL,
    key character varying(200) NOT NULL,
    moment timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.failed_logins_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.failed_logins_id_seq OWNED BY public.failed_logins.id;
CREATE TABLE public.guidelines (
    campaign_id integer NOT NULL,
    version integer NOT NULL,
    text text NOT NULL,
    created timestamp with time zone NOT NULL,
    created_by integer NOT NULL,
    CONSTRAINT ck_guidelines_version CHECK ((version > 0))
);
CREATE TABLE public.homes (
    key character varying(200) NOT NULL,
    moment timestamp with time zone NOT NULL
);
CREATE TABLE public.invitations (
    id integer NOT NULL,
    digest character varying(64) NOT NULL,
    name character varying(200),
    role character varying(20) NOT NULL,
    user_id integer,
    campaign_id integer,
    created timestamp with time zone NOT NULL,
    created_by integer NOT NULL,
    expires timestamp with time zone NOT NULL,
    CONSTRAINT ck_invitations_role CHECK (((role)::text = ANY ((ARRAY['viewer'::character varying, 'annotator'::character varying, 'adjudicator'::character varying, 'admin'::character varying])::text[])))
);
CREATE SEQUENCE public.invitations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.invitations_id_seq OWNED BY public.invitations.id;
CREATE TABLE public.jobs (
    id integer NOT NULL,
    task character varying(20) NOT NULL,
    subject text NOT NULL,
    request json NOT NULL,
    dataset_id integer,
    state character varying(20) NOT NULL,
    total bigint NOT NULL,
    began bigint NOT NULL,
    done bigint NOT NULL,
    left_out integer NOT NULL,
    attempts integer NOT NULL,
    reason text NOT NULL,
    worker character varying(200),
    created timestamp with time zone NOT NULL,
    started timestamp with time zone,
    heartbeat timestamp with time zone,
    finished timestamp with time zone,
    CONSTRAINT ck_jobs_judges_a_dataset CHECK ((((task)::text <> 'judge'::text) OR (dataset_id IS NOT NULL))),
    CONSTRAINT ck_jobs_running_has_a_worker CHECK ((((state)::text <> 'running'::text) OR ((worker IS NOT NULL) AND (heartbeat IS NOT NULL)))),
    CONSTRAINT ck_jobs_state CHECK (((state)::text = ANY ((ARRAY['queued'::character varying, 'running'::character varying, 'done'::character varying, 'failed'::character varying, 'cancelled'::character varying])::text[])))
);
CREATE SEQUENCE public.jobs_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.jobs_id_seq OWNED BY public.jobs.id;
CREATE TABLE public.judged (
    dataset_id integer NOT NULL,
    evaluator_id integer NOT NULL,
    revision integer NOT NULL
);
CREATE TABLE public.judgments (
    evaluator_id integer NOT NULL,
    dataset_id integer NOT NULL,
    mode character varying(20) NOT NULL,
    trace_id integer NOT NULL,
    digest character varying(64) NOT NULL,
    created timestamp with time zone NOT NULL,
    derived boolean NOT NULL,
    scores bytea NOT NULL,
    solution double precision,
    spread bytea,
    rationale text,
    spent json,
    CONSTRAINT ck_judgments_mode CHECK (((mode)::text = ANY ((ARRAY['offline'::character varying, 'online'::character varying])::text[])))
);
CREATE TABLE public.label_events (
    id integer NOT NULL,
    campaign_id integer NOT NULL,
    item_id integer NOT NULL,
    slot_id integer,
    user_id integer NOT NULL,
    kind character varying(20) NOT NULL,
    step integer,
    old json,
    new json,
    cause character varying(20) NOT NULL,
    of integer,
    key character varying(64) NOT NULL,
    moment timestamp with time zone NOT NULL,
    seconds double precision,
    digest character varying(64) NOT NULL,
    guideline integer NOT NULL,
    view character varying(20) NOT NULL,
    revealed integer,
    CONSTRAINT ck_label_events_cause CHECK (((cause)::text = ANY ((ARRAY[''::character varying, 'undo'::character varying, 'redo'::character varying])::text[]))),
    CONSTRAINT ck_label_events_cause_of CHECK ((((cause)::text = ''::text) = (of IS NULL))),
    CONSTRAINT ck_label_events_step CHECK ((step >= 0))
);
CREATE SEQUENCE public.label_events_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.label_events_id_seq OWNED BY public.label_events.id;
CREATE TABLE public.left_out (
    dataset_id integer NOT NULL,
    digest character varying(64) NOT NULL,
    source text NOT NULL,
    place text NOT NULL,
    error text NOT NULL
);
CREATE TABLE public.left_out_scores (
    evaluator_id integer NOT NULL,
    trace_id integer NOT NULL,
    dataset_id integer NOT NULL,
    trace_digest character varying(64) NOT NULL,
    whole bytea NOT NULL,
    steps bytea NOT NULL,
    probabilities bytea NOT NULL,
    created timestamp with time zone NOT NULL
);
CREATE TABLE public.logins (
    digest character varying(64) NOT NULL,
    user_id integer NOT NULL,
    created timestamp with time zone NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE TABLE public.server_secrets (
    name character varying(20) NOT NULL,
    secret bytea NOT NULL
);
CREATE TABLE public.slots (
    id integer NOT NULL,
    campaign_id integer NOT NULL,
    item_id integer NOT NULL,
    number integer NOT NULL,
    state character varying(20) NOT NULL,
    user_id integer,
    taken timestamp with time zone,
    expires timestamp with time zone,
    ended timestamp with time zone,
    public_id character varying(16) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT ck_slots_ended CHECK ((((state)::text = ANY ((ARRAY['submitted'::character varying, 'skipped'::character varying])::text[])) = (ended IS NOT NULL))),
    CONSTRAINT ck_slots_free_has_nobody CHECK ((((state)::text = 'free'::text) = (user_id IS NULL))),
    CONSTRAINT ck_slots_leased_expires CHECK ((((state)::text = 'leased'::text) = (expires IS NOT NULL))),
    CONSTRAINT ck_slots_state CHECK (((state)::text = ANY ((ARRAY['free'::character varying, 'leased'::character varying, 'submitted'::character varying, 'skipped'::character varying])::text[])))
);
CREATE SEQUENCE public.slots_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.slots_id_seq OWNED BY public.slots.id;
CREATE TABLE public.steps (
    trace_id integer NOT NULL,
    "position" integer NOT NULL,
    label smallint,
    valid boolean,
    share double precision,
    CONSTRAINT ck_steps_label CHECK ((label = ANY (ARRAY[0, 1, 2]))),
    CONSTRAINT ck_steps_label_says_valid CHECK (((label IS NULL) OR ((valid IS NOT NULL) AND (valid = (label <> 0))))),
    CONSTRAINT ck_steps_position CHECK (("position" >= 0))
);
CREATE TABLE public.stepsight_schema (
    version integer NOT NULL
);
CREATE TABLE public.substeps (
    trace_id integer NOT NULL,
    step integer NOT NULL,
    "position" integer NOT NULL,
    text text NOT NULL,
    CONSTRAINT ck_substeps_position CHECK (("position" >= 0))
);
CREATE TABLE public.traces (
    id integer NOT NULL,
    dataset_id integer NOT NULL,
    external_id character varying(500) NOT NULL,
    "position" integer NOT NULL,
    problem text NOT NULL,
    digest character varying(64) NOT NULL,
    n_steps integer NOT NULL,
    n_substeps integer NOT NULL,
    first_error integer,
    has_gold boolean NOT NULL,
    n_redundant integer DEFAULT 0 NOT NULL,
    meta json NOT NULL,
    text_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT ck_traces_counts CHECK (((n_steps > 0) AND (n_substeps >= n_steps))),
    CONSTRAINT ck_traces_first_error CHECK (((first_error >= 0) AND (first_error < n_steps))),
    CONSTRAINT ck_traces_has_gold CHECK (((first_error IS NULL) OR has_gold)),
    CONSTRAINT ck_traces_position CHECK (("position" >= 0))
);
CREATE SEQUENCE public.traces_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.traces_id_seq OWNED BY public.traces.id;
CREATE TABLE public.triangles (
    evaluator_id integer NOT NULL,
    dataset_id integer NOT NULL,
    trace_id integer NOT NULL,
    digest character varying(64) NOT NULL,
    created timestamp with time zone NOT NULL,
    change double precision NOT NULL,
    online bytea NOT NULL,
    offline bytea NOT NULL,
    solution double precision,
    spread bytea,
    rationale text,
    spent json,
    packed bytea NOT NULL
);
CREATE TABLE public.uploads (
    id integer NOT NULL,
    user_id integer NOT NULL,
    name character varying(200) NOT NULL,
    size integer NOT NULL,
    sha256 character varying(64) NOT NULL,
    file character varying(64) NOT NULL,
    created timestamp with time zone NOT NULL,
    touched timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.uploads_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.uploads_id_seq OWNED BY public.uploads.id;
CREATE TABLE public.users (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    role character varying(20) NOT NULL,
    password text,
    created timestamp with time zone NOT NULL,
    ended timestamp with time zone,
    last_login timestamp with time zone,
    CONSTRAINT ck_users_role CHECK (((role)::text = ANY ((ARRAY['viewer'::character varying, 'annotator'::character varying, 'adjudicator'::character varying, 'admin'::character varying])::text[])))
);
CREATE SEQUENCE public.users_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.users_id_seq OWNED BY public.users.id;
ALTER TABLE ONLY public.calibrations ALTER COLUMN id SET DEFAULT nextval('public.calibrations_id_seq'::regclass);
ALTER TABLE ONLY public.campaign_items ALTER COLUMN id SET DEFAULT nextval('public.campaign_items_id_seq'::regclass);
ALTER TABLE ONLY public.campaigns ALTER COLUMN id SET DEFAULT nextval('public.campaigns_id_seq'::regclass);
ALTER TABLE ONLY public.datasets ALTER COLUMN id SET DEFAULT nextval('public.datasets_id_seq'::regclass);
ALTER TABLE ONLY public.dispute_entries ALTER COLUMN id SET DEFAULT nextval('public.dispute_entries_id_seq'::regclass);
ALTER TABLE ONLY public.disputes ALTER COLUMN id SET DEFAULT nextval('public.disputes_id_seq'::regclass);
ALTER TABLE ONLY public.evaluators ALTER COLUMN id SET DEFAULT nextval('public.evaluators_id_seq'::regclass);
ALTER TABLE ONLY public.failed_logins ALTER COLUMN id SET DEFAULT nextval('public.failed_logins_id_seq'::regclass);
ALTER TABLE ONLY public.invitations ALTER COLUMN id SET DEFAULT nextval('public.invitations_id_seq'::regclass);
ALTER TABLE ONLY public.jobs ALTER COLUMN id SET DEFAULT nextval('public.jobs_id_seq'::regclass);
ALTER TABLE ONLY public.label_events ALTER COLUMN id SET DEFAULT nextval('public.label_events_id_seq'::regclass);
ALTER TABLE ONLY public.slots ALTER COLUMN id SET DEFAULT nextval('public.slots_id_seq'::regclass);
ALTER TABLE ONLY public.traces ALTER COLUMN id SET DEFAULT nextval('public.traces_id_seq'::regclass);
ALTER TABLE ONLY public.uploads ALTER COLUMN id SET DEFAULT nextval('public.uploads_id_seq'::regclass);
ALTER TABLE ONLY public.users ALTER COLUMN id SET DEFAULT nextval('public.users_id_seq'::regclass);
INSERT INTO public.calibrations VALUES (1, 1, 1, 'sums', 0.375, 0.2, '{"metric": "f1", "threshold": "validity"}', '2026-03-01 09:00:20+00');
INSERT INTO public.campaign_annotators VALUES (2, 3, '2026-03-01 09:01:15+00', 1);
INSERT INTO public.campaign_annotators VALUES (2, 5, '2026-03-01 09:01:31+00', 1);
INSERT INTO public.campaign_items VALUES (1, 1, 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 0, 'ordered', 'c53dc2fcc7f32b8bf2b03750e698f86013a31f3207514f4394cee474e03c69c1');
INSERT INTO public.campaign_items VALUES (2, 1, 2, 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', 1, 'ordered', 'cec539cadbce451b7b72839597f6b2618807b81b82a9acedc76057a351522f87');
INSERT INTO public.campaign_items VALUES (3, 1, 3, 'd06c29c5a568c8c26155cfaa4a113e5b381526770192d188959dfe1e64740987', 2, 'ordered', '13568b334395977ab61fa541a7ede9bd5a9347d32b362eb1feb0ede1dadc755c');
INSERT INTO public.campaign_items VALUES (4, 1, 4, 'b2e9c88a47569eb763c6857df276128b53a90dea05dbc1a7a8a21374cb1bddc6', 3, 'ordered', '265a8f3f370ed10850c0d0bbc1c1f27f70a04c37b5d6223612b9c612c42aa19c');
INSERT INTO public.campaign_items VALUES (5, 1, 5, 'ff5a28ed2342370b502b4a506eb3172f4de9e5852da1cd957d1ce8d2b87c6cfd', 4, 'gold', '45d22604914ed8de52e5c0b43b101ebdcfd047b1932aea553c0c9c560fafbf63');
INSERT INTO public.campaign_items VALUES (6, 2, 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 0, 'ordered', 'c53dc2fcc7f32b8bf2b03750e698f86013a31f3207514f4394cee474e03c69c1');
INSERT INTO public.campaign_items VALUES (7, 2, 3, 'd06c29c5a568c8c26155cfaa4a113e5b381526770192d188959dfe1e64740987', 1, 'ordered', '13568b334395977ab61fa541a7ede9bd5a9347d32b362eb1feb0ede1dadc755c');
INSERT INTO public.campaigns VALUES (1, 'blind', 1, NULL, '{"conditions": {}, "overlap": 2, "sample": null, "population": null, "seed": 0, "view": "stepwise", "after_error": true, "shows": "nothing", "shows_equations": false, "suggests": false, "shows_answer": true, "after_submission": "nothing", "ordering": "file", "gold_rate": 0.5, "qualification_items": 0, "error_kinds": ["calculation", "misreading", "wrong method", "unjustified", "contradiction", "missing case", "other"], "lease": 1800}', true, '2026-03-01 09:00:21+00', 1, NULL, false, NULL);
INSERT INTO public.campaigns VALUES (2, 'shown', 1, 1, '{"conditions": {}, "overlap": 1, "sample": 2, "population": 4, "seed": 0, "view": "whole", "after_error": true, "shows": "scores", "shows_equations": true, "suggests": true, "shows_answer": true, "after_submission": "nothing", "ordering": "file", "gold_rate": 0.0, "qualification_items": 0, "error_kinds": ["calculation", "misreading", "wrong method", "unjustified", "contradiction", "missing case", "other"], "lease": 1800}', false, '2026-03-01 09:01:13+00', 1, NULL, true, NULL);
INSERT INTO public.datasets VALUES (1, 'sums', 'plain', 'sums.jsonl', '1cfc82297a27dc77807a6a3fd181d8e5da4e99a1e0640f4455bce5fc146361cd', '2026-03-01 09:00:05+00', 1);
INSERT INTO public.datasets VALUES (2, 'control', 'plain', 'control.jsonl', '78eead8f8e3f1876fdfdebea1c54bf03f3b4a3ea4a89d9eb37aed252fb0a6ec8', '2026-03-01 09:00:06+00', 1);
INSERT INTO public.deleted VALUES ('old');
INSERT INTO public.dispute_entries VALUES (1, 1, 1, 'accepted', 'So it is.', '2026-03-01 09:01:36+00');
INSERT INTO public.disputes VALUES (1, 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 1, 'neg', 'pos', 'It is right.', 2, '2026-03-01 09:01:35+00');
INSERT INTO public.evaluators VALUES (1, 'mini', 'of mini', 'stepsight', 'bidirectional', '{"thresholds": {"validity": 0.4, "redundancy": 0.2}, "parameters": 1234, "files": {"a": "b"}}', '2026-03-01 09:00:07+00');
INSERT INTO public.evaluators VALUES (2, 'causal', 'of causal', 'stepsight', 'causal', '{}', '2026-03-01 09:00:08+00');
INSERT INTO public.evaluators VALUES (3, 'binary', 'of binary', 'imported', 'unknown', '{"outputs": "validity"}', '2026-03-01 09:00:09+00');
INSERT INTO public.evaluators VALUES (4, 'verdicts', 'of verdicts', 'imported', 'unknown', '{"outputs": "verdict"}', '2026-03-01 09:00:10+00');
INSERT INTO public.failed_logins VALUES (1, 'name of nobody', '2026-03-01 09:01:36+00');
INSERT INTO public.guidelines VALUES (1, 1, 'Is it right?', '2026-03-01 09:00:22+00', 1);
INSERT INTO public.guidelines VALUES (1, 2, 'Is it right, and why?', '2026-03-01 09:00:23+00', 1);
INSERT INTO public.guidelines VALUES (2, 1, 'Is it right?', '2026-03-01 09:01:14+00', 1);
INSERT INTO public.homes VALUES ('ada at home', '2026-03-01 09:01:42+00');
INSERT INTO public.invitations VALUES (2, 'b70e16390616c44762177faae29df8e6f88073410d1b323cd9409dd316904542', NULL, 'viewer', NULL, NULL, '2026-03-01 09:01:34+00', 1, '2026-03-08 09:01:32+00');
INSERT INTO public.jobs VALUES (1, 'judge', '', '{"evaluator": "mini", "spec": "mini", "fingerprint": "of mini", "mode": "hindsight", "dtype": "float32"}', 1, 'queued', 4, 0, 0, 0, 0, '', NULL, '2026-03-01 09:01:43+00', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (2, 'import', 'MR-MATH, invalid steps with the scores of 12 evaluators', '{"benchmark": "mr-math-invalid", "scores": true}', NULL, 'queued', 0, 0, 0, 0, 0, '', NULL, '2026-03-01 09:01:44+00', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (3, 'fetch', 'lab/prm', '{"repo": "lab/prm", "revision": "cccccccccccccccccccccccccccccccccccccccc", "parts": {}}', NULL, 'queued', 15200000000, 0, 0, 0, 0, '', NULL, '2026-03-01 09:01:45+00', NULL, NULL, NULL);
INSERT INTO public.judged VALUES (1, 1, 2);
INSERT INTO public.judged VALUES (1, 2, 1);
INSERT INTO public.judged VALUES (1, 3, 1);
INSERT INTO public.judged VALUES (1, 4, 1);
INSERT INTO public.judgments VALUES (1, 1, 'online', 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', '2026-03-01 09:00:11+00', true, '\xfe79ca3e08d0173f2dbe3c3c73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (1, 1, 'offline', 2, 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', '2026-03-01 09:00:12+00', true, '\x9d3e1a3e6fee813e2179183f73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (1, 1, 'online', 2, 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', '2026-03-01 09:00:12+00', true, '\xfe79ca3e08d0173f2dbe3c3cd474243e521a4f3d26f1493fd1a6883ebb96403ee9860b3f', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (1, 1, 'offline', 3, 'd06c29c5a568c8c26155cfaa4a113e5b381526770192d188959dfe1e64740987', '2026-03-01 09:00:13+00', true, '\xa49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (1, 1, 'online', 3, 'd06c29c5a568c8c26155cfaa4a113e5b381526770192d188959dfe1e64740987', '2026-03-01 09:00:13+00', true, '\xfe79ca3e08d0173f2dbe3c3cd474243e521a4f3d26f1493f', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (1, 1, 'offline', 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', '2026-03-01 09:00:15+00', false, '\x24e3fb3e483b3e3e38ffa43e646b083f1aa0f83c379fdf3ec0a8493f0abb103eef43913d', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (2, 1, 'online', 2, 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', '2026-03-01 09:00:16+00', false, '\x1b6a9d3e9517e43ea0fc7c3e0f5b4c3e909b3c3d831f413fd2513c3b5bdf533f4c912d3e', 0.25, '\x0000003e0000003e0000003e', NULL, NULL);
INSERT INTO public.judgments VALUES (3, 1, 'offline', 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', '2026-03-01 09:00:17+00', false, '\x6666663f00000000cdcccc3d0000003f000000000000003fd0cccc3d000000006666663f', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (4, 1, 'offline', 3, 'd06c29c5a568c8c26155cfaa4a113e5b381526770192d188959dfe1e64740987', '2026-03-01 09:00:18+00', false, '\x0000803f0000000000000000000000000000000000000000', 0, NULL, '3 + 3 is 6, not 7.', '{"calls": 2, "unread": 1, "prompt_tokens": 300, "completion_tokens": 40}');
INSERT INTO public.judgments VALUES (1, 1, 'offline', 4, 'earlier', '2026-03-01 09:00:14+00', true, '\xa49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (1, 1, 'online', 4, 'earlier', '2026-03-01 09:00:14+00', true, '\xfe79ca3e08d0173f2dbe3c3cd474243e521a4f3d26f1493f', NULL, NULL, NULL, NULL);
INSERT INTO public.label_events VALUES (1, 1, 5, 9, 2, 'label', 0, NULL, '"unsure"', '', NULL, 'label-0-ben-5-unsure', '2026-03-01 09:00:28+00', 1.5, 'ff5a28ed2342370b502b4a506eb3172f4de9e5852da1cd957d1ce8d2b87c6cfd', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (2, 1, 5, 9, 2, 'label', 0, '"unsure"', '"pos"', '', NULL, 'label-0-ben-5-pos', '2026-03-01 09:00:30+00', 1.5, 'ff5a28ed2342370b502b4a506eb3172f4de9e5852da1cd957d1ce8d2b87c6cfd', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (3, 1, 5, 9, 2, 'comment', 0, NULL, '"Ünsure ∑ <b>"', '', NULL, 'comment-0-ben-5-nsure__<b>', '2026-03-01 09:00:32+00', 1.5, 'ff5a28ed2342370b502b4a506eb3172f4de9e5852da1cd957d1ce8d2b87c6cfd', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (4, 1, 5, 9, 2, 'comment', 0, '"Ünsure ∑ <b>"', NULL, 'undo', 3, 'undo', '2026-03-01 09:00:34+00', NULL, 'ff5a28ed2342370b502b4a506eb3172f4de9e5852da1cd957d1ce8d2b87c6cfd', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (5, 1, 5, 9, 2, 'submit', NULL, NULL, NULL, '', NULL, 'submit-None-ben-5-None', '2026-03-01 09:00:36+00', 1.5, 'ff5a28ed2342370b502b4a506eb3172f4de9e5852da1cd957d1ce8d2b87c6cfd', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (6, 1, 1, 1, 2, 'label', 0, NULL, '"pos"', '', NULL, 'label-0-ben-1-pos', '2026-03-01 09:00:42+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (7, 1, 1, 1, 2, 'reveal', NULL, '1', '2', '', NULL, 'reveal-None-ben-1-2', '2026-03-01 09:00:44+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (8, 1, 1, 1, 2, 'label', 1, NULL, '"pos"', '', NULL, 'label-1-ben-1-pos', '2026-03-01 09:00:46+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2);
INSERT INTO public.label_events VALUES (9, 1, 1, 1, 2, 'submit', NULL, NULL, NULL, '', NULL, 'submit-None-ben-1-None', '2026-03-01 09:00:48+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2);
INSERT INTO public.label_events VALUES (10, 1, 1, 2, 3, 'label', 0, NULL, '"neg"', '', NULL, 'label-0-cleo-1-neg', '2026-03-01 09:00:54+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (11, 1, 1, 2, 3, 'reveal', NULL, '1', '2', '', NULL, 'reveal-None-cleo-1-2', '2026-03-01 09:00:56+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (12, 1, 1, 2, 3, 'label', 1, NULL, '"neg"', '', NULL, 'label-1-cleo-1-neg', '2026-03-01 09:00:58+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2);
INSERT INTO public.label_events VALUES (13, 1, 1, 2, 3, 'error', 1, NULL, '"calculation"', '', NULL, 'error-1-cleo-1-calculation', '2026-03-01 09:01:00+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2);
INSERT INTO public.label_events VALUES (14, 1, 1, 2, 3, 'correction', 1, NULL, '"1 + 1 = 2"', '', NULL, 'correction-1-cleo-1-1_+_1_=_2', '2026-03-01 09:01:02+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2);
INSERT INTO public.label_events VALUES (15, 1, 1, 2, 3, 'submit', NULL, NULL, NULL, '', NULL, 'submit-None-cleo-1-None', '2026-03-01 09:01:04+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2);
INSERT INTO public.label_events VALUES (16, 1, 1, NULL, 1, 'decide', 0, NULL, '{"label": "neg", "reason": "It is wrong.", "own": false}', '', NULL, 'decision-1', '2026-03-01 09:01:06+00', NULL, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', NULL);
INSERT INTO public.label_events VALUES (17, 1, 2, 3, 2, 'flag', NULL, NULL, '"odd"', '', NULL, 'flag-None-ben-2-odd', '2026-03-01 09:01:11+00', 1.5, 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', 2, 'stepwise', 1);
INSERT INTO public.label_events VALUES (18, 2, 6, 10, 3, 'suggest', NULL, NULL, '["pos", "neg"]', '', NULL, 'suggest-10', '2026-03-01 09:01:20+00', NULL, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 1, 'whole', NULL);
INSERT INTO public.label_events VALUES (19, 2, 6, 10, 3, 'label', 0, '"pos"', '"neg"', '', NULL, 'label-0-cleo-6-neg', '2026-03-01 09:01:21+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 1, 'whole', NULL);
INSERT INTO public.label_events VALUES (20, 2, 6, 10, 3, 'skip', NULL, NULL, '"Too hard."', '', NULL, 'skip-None-cleo-6-Too_hard.', '2026-03-01 09:01:23+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 1, 'whole', NULL);
INSERT INTO public.left_out VALUES (1, 'af71a56c8bcf853d87860b0410b698555f213b945074a0a22f20ac7bdfded2a4', 'sums.jsonl', 'line 5', 'there are no steps. Give at least one step.');
INSERT INTO public.left_out_scores VALUES (2, 1, 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', '\x61446d3d7417523edda53c3fe10c493fd31bfb3d237dbc3da4a6903ea99a883d5999263f', '\x00000000', '\xc030023f57396c3d5617de3e2d189a3d9045003fd4eed83e', '2026-03-01 09:00:19+00');
INSERT INTO public.logins VALUES ('98b5b4596fd444c2783ab17b2d2bbc506c82413670813675209767dd4cf9b88d', 1, '2026-03-01 09:01:40+00', '2026-03-15 09:01:38+00');
INSERT INTO public.server_secrets VALUES ('pseudonyms', '\x6f6620746865207465737473');
INSERT INTO public.slots VALUES (4, 1, 2, 1, 'free', NULL, NULL, NULL, NULL, '12b1401ddd056000');
INSERT INTO public.slots VALUES (5, 1, 3, 0, 'free', NULL, NULL, NULL, NULL, 'a21a7863c62dba25');
INSERT INTO public.slots VALUES (6, 1, 3, 1, 'free', NULL, NULL, NULL, NULL, '13fd997b1ae9455e');
INSERT INTO public.slots VALUES (7, 1, 4, 0, 'free', NULL, NULL, NULL, NULL, '89ab4b60c6f69683');
INSERT INTO public.slots VALUES (8, 1, 4, 1, 'free', NULL, NULL, NULL, NULL, 'fd63f67a331d5489');
INSERT INTO public.slots VALUES (9, 1, 5, 0, 'submitted', 2, '2026-03-01 09:00:26+00', NULL, '2026-03-01 09:00:37+00', 'b0e53040d0fefc50');
INSERT INTO public.slots VALUES (1, 1, 1, 0, 'submitted', 2, '2026-03-01 09:00:40+00', NULL, '2026-03-01 09:00:49+00', '862eb758c6da3068');
INSERT INTO public.slots VALUES (2, 1, 1, 1, 'submitted', 3, '2026-03-01 09:00:52+00', NULL, '2026-03-01 09:01:05+00', 'fc1be84a326dd247');
INSERT INTO public.slots VALUES (3, 1, 2, 0, 'leased', 2, '2026-03-01 09:01:09+00', '2026-03-01 09:31:12+00', NULL, '0c6fa2ef22d2f261');
INSERT INTO public.slots VALUES (11, 2, 7, 0, 'free', NULL, NULL, NULL, NULL, '55f6066eeb5b56a1');
INSERT INTO public.slots VALUES (10, 2, 6, 0, 'skipped', 3, '2026-03-01 09:01:18+00', NULL, '2026-03-01 09:01:24+00', '211125fbbc68af1e');
INSERT INTO public.slots VALUES (12, 2, 6, 1, 'free', NULL, NULL, NULL, NULL, '554149740fcb5997');
INSERT INTO public.steps VALUES (1, 0, 2, true, NULL);
INSERT INTO public.steps VALUES (1, 1, 0, false, NULL);
INSERT INTO public.steps VALUES (2, 0, 2, true, NULL);
INSERT INTO public.steps VALUES (2, 1, 1, true, NULL);
INSERT INTO public.steps VALUES (2, 2, 2, true, NULL);
INSERT INTO public.steps VALUES (3, 0, NULL, NULL, 0.75);
INSERT INTO public.steps VALUES (3, 1, NULL, NULL, NULL);
INSERT INTO public.steps VALUES (4, 0, 0, false, NULL);
INSERT INTO public.steps VALUES (4, 1, NULL, NULL, NULL);
INSERT INTO public.steps VALUES (5, 0, 2, true, NULL);
INSERT INTO public.stepsight_schema VALUES (3);
INSERT INTO public.substeps VALUES (1, 0, 0, 'A sum.');
INSERT INTO public.substeps VALUES (1, 1, 0, 'So 1 + 1 = 3.');
INSERT INTO public.substeps VALUES (1, 1, 1, 'Done.');
INSERT INTO public.substeps VALUES (2, 0, 0, 'It is 4.');
INSERT INTO public.substeps VALUES (2, 1, 0, 'Nice.');
INSERT INTO public.substeps VALUES (2, 2, 0, 'So 4.');
INSERT INTO public.substeps VALUES (3, 0, 0, 'It is 6.');
INSERT INTO public.substeps VALUES (3, 1, 0, 'Yes.');
INSERT INTO public.substeps VALUES (4, 0, 0, 'It is 9.');
INSERT INTO public.substeps VALUES (4, 1, 0, 'So 9.');
INSERT INTO public.substeps VALUES (5, 0, 0, 'add(5, 5)');
INSERT INTO public.traces VALUES (1, 1, 'error', 0, 'What is $1 + 1$?', 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 3, 1, true, 0, '{"level": 2, "generator": "hand", "answer": "2"}', 'c53dc2fcc7f32b8bf2b03750e698f86013a31f3207514f4394cee474e03c69c1');
INSERT INTO public.traces VALUES (2, 1, 'clean', 1, 'Was ist 2 + 2 = ∑?', 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', 3, 3, NULL, true, 1, '{}', 'cec539cadbce451b7b72839597f6b2618807b81b82a9acedc76057a351522f87');
INSERT INTO public.traces VALUES (3, 1, 'unlabelled', 2, 'What is 3 + 3?', 'd06c29c5a568c8c26155cfaa4a113e5b381526770192d188959dfe1e64740987', 2, 2, NULL, false, 0, '{}', '13568b334395977ab61fa541a7ede9bd5a9347d32b362eb1feb0ede1dadc755c');
INSERT INTO public.traces VALUES (4, 1, 'part', 3, 'What is 4 + 4?', 'b2e9c88a47569eb763c6857df276128b53a90dea05dbc1a7a8a21374cb1bddc6', 2, 2, 0, true, 0, '{}', '265a8f3f370ed10850c0d0bbc1c1f27f70a04c37b5d6223612b9c612c42aa19c');
INSERT INTO public.traces VALUES (5, 2, 'gold', 0, 'What is 5 + 5?', 'ff5a28ed2342370b502b4a506eb3172f4de9e5852da1cd957d1ce8d2b87c6cfd', 1, 1, NULL, true, 0, '{}', '45d22604914ed8de52e5c0b43b101ebdcfd047b1932aea553c0c9c560fafbf63');
INSERT INTO public.triangles VALUES (1, 1, 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', '2026-03-01 09:00:11+00', 0.24483245611190796, '\xfe79ca3e08d0173f2dbe3c3c73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f', '\x9d3e1a3e6fee813e2179183f73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f', NULL, NULL, NULL, NULL, '\xfe79ca3e08d0173f2dbe3c3ca49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f9d3e1a3e6fee813e2179183f73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f');
INSERT INTO public.triangles VALUES (1, 1, 2, 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', '2026-03-01 09:00:12+00', 0.24483245611190796, '\xfe79ca3e08d0173f2dbe3c3cd474243e521a4f3d26f1493fd1a6883ebb96403ee9860b3f', '\x9d3e1a3e6fee813e2179183f73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f', NULL, NULL, NULL, NULL, '\xfe79ca3e08d0173f2dbe3c3ca49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f9d3e1a3e6fee813e2179183f73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f');
INSERT INTO public.triangles VALUES (1, 1, 3, 'd06c29c5a568c8c26155cfaa4a113e5b381526770192d188959dfe1e64740987', '2026-03-01 09:00:13+00', 0.2366575002670288, '\xfe79ca3e08d0173f2dbe3c3cd474243e521a4f3d26f1493f', '\xa49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f', NULL, NULL, NULL, NULL, '\xfe79ca3e08d0173f2dbe3c3ca49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f');
INSERT INTO public.triangles VALUES (1, 1, 4, 'earlier', '2026-03-01 09:00:14+00', 0.2366575002670288, '\xfe79ca3e08d0173f2dbe3c3cd474243e521a4f3d26f1493f', '\xa49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f', NULL, NULL, NULL, NULL, '\xfe79ca3e08d0173f2dbe3c3ca49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f');
INSERT INTO public.uploads VALUES (1, 1, 'traces.jsonl', 33, '80697df2007a97a2ad9e6cdd9e5c4ef7dc0142b996a1e0b350634d52ec60c22b', 'b65ea617776bd5db3e0851b5072a58a5', '2026-03-01 09:01:47+00', '2026-03-01 09:01:48+00');
INSERT INTO public.users VALUES (2, 'ben', 'annotator', NULL, '2026-03-01 09:00:01+00', NULL, NULL);
INSERT INTO public.users VALUES (3, 'cleo', 'annotator', NULL, '2026-03-01 09:00:02+00', NULL, NULL);
INSERT INTO public.users VALUES (4, 'gone', 'viewer', NULL, '2026-03-01 09:00:03+00', '2026-03-01 09:00:04+00', NULL);
INSERT INTO public.users VALUES (5, 'dora', 'annotator', '$argon2id$v=19$m=65536,t=3,p=4$gwE7YKS5R6PW4uSkWCsPaA$WqndEsC7nlaU1bJb5BG6IDZsGjiX8nojfP8TI1i/B6I', '2026-03-01 09:01:30+00', NULL, NULL);
INSERT INTO public.users VALUES (1, 'ada', 'admin', '$argon2id$v=19$m=65536,t=3,p=4$RVBWNo04bHHpKRxwnV2qVg$tJVzz5rgWOLFYXneLZ1N6jYidsI3ew15R5WJ6GGBW4c', '2026-03-01 09:00:00+00', NULL, '2026-03-01 09:01:39+00');
SELECT pg_catalog.setval('public.calibrations_id_seq', 1, true);
SELECT pg_catalog.setval('public.campaign_items_id_seq', 7, true);
SELECT pg_catalog.setval('public.campaigns_id_seq', 2, true);
SELECT pg_catalog.setval('public.datasets_id_seq', 2, true);
SELECT pg_catalog.setval('public.dispute_entries_id_seq', 1, true);
SELECT pg_catalog.setval('public.disputes_id_seq', 1, true);
SELECT pg_catalog.setval('public.evaluators_id_seq', 4, true);
SELECT pg_catalog.setval('public.failed_logins_id_seq', 1, true);
SELECT pg_catalog.setval('public.invitations_id_seq', 2, true);
SELECT pg_catalog.setval('public.jobs_id_seq', 3, true);
SELECT pg_catalog.setval('public.label_events_id_seq', 20, true);
SELECT pg_catalog.setval('public.slots_id_seq', 12, true);
SELECT pg_catalog.setval('public.traces_id_seq', 5, true);
SELECT pg_catalog.setval('public.uploads_id_seq', 1, true);
SELECT pg_catalog.setval('public.users_id_seq', 5, true);
ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT pk_calibrations PRIMARY KEY (id);
ALTER TABLE ONLY public.campaign_annotators
    ADD CONSTRAINT pk_campaign_annotators PRIMARY KEY (campaign_id, user_id);
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT pk_campaign_items PRIMARY KEY (id);
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT pk_campaigns PRIMARY KEY (id);
ALTER TABLE ONLY public.datasets
    ADD CONSTRAINT pk_datasets PRIMARY KEY (id);
ALTER TABLE ONLY public.deleted
    ADD CONSTRAINT pk_deleted PRIMARY KEY (name);
ALTER TABLE ONLY public.dispute_entries
    ADD CONSTRAINT pk_dispute_entries PRIMARY KEY (id);
ALTER TABLE ONLY public.disputes
    ADD CONSTRAINT pk_disputes PRIMARY KEY (id);
ALTER TABLE ONLY public.evaluators
    ADD CONSTRAINT pk_evaluators PRIMARY KEY (id);
ALTER TABLE ONLY public.failed_logins
    ADD CONSTRAINT pk_failed_logins PRIMARY KEY (id);
ALTER TABLE ONLY public.guidelines
    ADD CONSTRAINT pk_guidelines PRIMARY KEY (campaign_id, version);
ALTER TABLE ONLY public.homes
    ADD CONSTRAINT pk_homes PRIMARY KEY (key);
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT pk_invitations PRIMARY KEY (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT pk_jobs PRIMARY KEY (id);
ALTER TABLE ONLY public.judged
    ADD CONSTRAINT pk_judged PRIMARY KEY (dataset_id, evaluator_id);
ALTER TABLE ONLY public.judgments
    ADD CONSTRAINT pk_judgments PRIMARY KEY (evaluator_id, dataset_id, mode, trace_id);
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT pk_label_events PRIMARY KEY (id);
ALTER TABLE ONLY public.left_out
    ADD CONSTRAINT pk_left_out PRIMARY KEY (dataset_id, digest);
ALTER TABLE ONLY public.left_out_scores
    ADD CONSTRAINT pk_left_out_scores PRIMARY KEY (evaluator_id, trace_id);
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT pk_logins PRIMARY KEY (digest);
ALTER TABLE ONLY public.server_secrets
    ADD CONSTRAINT pk_server_secrets PRIMARY KEY (name);
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT pk_slots PRIMARY KEY (id);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT pk_steps PRIMARY KEY (trace_id, "position");
ALTER TABLE ONLY public.substeps
    ADD CONSTRAINT pk_substeps PRIMARY KEY (trace_id, step, "position");
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT pk_traces PRIMARY KEY (id);
ALTER TABLE ONLY public.triangles
    ADD CONSTRAINT pk_triangles PRIMARY KEY (evaluator_id, dataset_id, trace_id);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT pk_uploads PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT pk_users PRIMARY KEY (id);
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT uq_campaign_items_campaign_id_place UNIQUE (campaign_id, place);
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT uq_campaign_items_campaign_id_trace_id UNIQUE (campaign_id, trace_id);
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT uq_campaign_items_id_campaign_id UNIQUE (id, campaign_id);
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT uq_campaigns_name UNIQUE (name);
ALTER TABLE ONLY public.datasets
    ADD CONSTRAINT uq_datasets_name UNIQUE (name);
ALTER TABLE ONLY public.evaluators
    ADD CONSTRAINT uq_evaluators_fingerprint UNIQUE (fingerprint);
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT uq_invitations_digest UNIQUE (digest);
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT uq_label_events_user_id_key UNIQUE (user_id, key);
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT uq_slots_item_id_number UNIQUE (item_id, number);
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT uq_slots_item_id_user_id UNIQUE (item_id, user_id);
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT uq_traces_dataset_id_external_id UNIQUE (dataset_id, external_id);
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT uq_traces_dataset_id_position UNIQUE (dataset_id, "position");
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT uq_traces_id_dataset_id UNIQUE (id, dataset_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT uq_users_name UNIQUE (name);
CREATE INDEX ix_calibrations_evaluator_id ON public.calibrations USING btree (evaluator_id, id);
CREATE INDEX ix_campaign_items_text_digest ON public.campaign_items USING btree (text_digest, campaign_id);
CREATE INDEX ix_campaign_items_trace_id ON public.campaign_items USING btree (trace_id);
CREATE INDEX ix_dispute_entries_dispute_id ON public.dispute_entries USING btree (dispute_id, id);
CREATE INDEX ix_disputes_trace_id ON public.disputes USING btree (trace_id);
CREATE INDEX ix_failed_logins_key ON public.failed_logins USING btree (key, moment);
CREATE INDEX ix_jobs_state ON public.jobs USING btree (state, id);
CREATE INDEX ix_judgments_trace_id ON public.judgments USING btree (trace_id, evaluator_id, mode);
CREATE INDEX ix_label_events_campaign_id ON public.label_events USING btree (campaign_id, id);
CREATE INDEX ix_label_events_item_id ON public.label_events USING btree (item_id, id);
CREATE INDEX ix_label_events_of ON public.label_events USING btree (of);
CREATE INDEX ix_label_events_slot_id ON public.label_events USING btree (slot_id, id);
CREATE INDEX ix_left_out_scores_dataset_id ON public.left_out_scores USING btree (dataset_id, evaluator_id);
CREATE INDEX ix_logins_user_id ON public.logins USING btree (user_id);
CREATE INDEX ix_search_problem ON public.traces USING gin (public.search_trigrams(problem));
CREATE INDEX ix_search_text ON public.substeps USING gin (public.search_trigrams(text));
CREATE INDEX ix_slots_campaign_id ON public.slots USING btree (campaign_id, state);
CREATE UNIQUE INDEX ix_slots_public_id ON public.slots USING btree (public_id);
CREATE INDEX ix_slots_user_id ON public.slots USING btree (user_id, campaign_id);
CREATE INDEX ix_steps_shares ON public.steps USING btree (trace_id) WHERE (share IS NOT NULL);
CREATE INDEX ix_traces_counts ON public.traces USING btree (dataset_id, first_error, has_gold, n_steps, n_substeps, n_redundant);
CREATE INDEX ix_traces_text_digest ON public.traces USING btree (text_digest);
CREATE INDEX ix_triangles_trace_id ON public.triangles USING btree (trace_id, evaluator_id);
CREATE INDEX ix_uploads_user_id ON public.uploads USING btree (user_id, id);
CREATE TRIGGER dispute_entries_kept BEFORE DELETE OR UPDATE ON public.dispute_entries FOR EACH ROW EXECUTE FUNCTION public.keep_dispute_entries();
CREATE TRIGGER disputes_kept BEFORE DELETE OR UPDATE ON public.disputes FOR EACH ROW EXECUTE FUNCTION public.keep_disputes();
CREATE TRIGGER guidelines_kept BEFORE DELETE OR UPDATE ON public.guidelines FOR EACH ROW EXECUTE FUNCTION public.keep_guidelines();
CREATE TRIGGER label_events_kept BEFORE DELETE OR UPDATE ON public.label_events FOR EACH ROW EXECUTE FUNCTION public.keep_label_events();
CREATE TRIGGER traces_deleted AFTER DELETE ON public.traces REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION public.note_deleted_traces();
ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT fk_calibrations_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT fk_calibrations_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaign_annotators
    ADD CONSTRAINT fk_campaign_annotators_added_by FOREIGN KEY (added_by) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign_annotators
    ADD CONSTRAINT fk_campaign_annotators_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign_annotators
    ADD CONSTRAINT fk_campaign_annotators_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT fk_campaign_items_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT fk_campaign_items_trace_id FOREIGN KEY (trace_id) REFERENCES public.traces(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT fk_campaigns_created_by FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT fk_campaigns_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT fk_campaigns_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.dispute_entries
    ADD CONSTRAINT fk_dispute_entries_dispute_id FOREIGN KEY (dispute_id) REFERENCES public.disputes(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.dispute_entries
    ADD CONSTRAINT fk_dispute_entries_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.disputes
    ADD CONSTRAINT fk_disputes_trace_id FOREIGN KEY (trace_id) REFERENCES public.traces(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.disputes
    ADD CONSTRAINT fk_disputes_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.guidelines
    ADD CONSTRAINT fk_guidelines_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.guidelines
    ADD CONSTRAINT fk_guidelines_created_by FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT fk_invitations_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT fk_invitations_created_by FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT fk_invitations_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT fk_jobs_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.judged
    ADD CONSTRAINT fk_judged_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.judged
    ADD CONSTRAINT fk_judged_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.judgments
    ADD CONSTRAINT fk_judgments_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.judgments
    ADD CONSTRAINT fk_judgments_trace_id_dataset_id FOREIGN KEY (trace_id, dataset_id) REFERENCES public.traces(id, dataset_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_item_id FOREIGN KEY (item_id) REFERENCES public.campaign_items(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_of FOREIGN KEY (of) REFERENCES public.label_events(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_slot_id FOREIGN KEY (slot_id) REFERENCES public.slots(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.left_out
    ADD CONSTRAINT fk_left_out_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.left_out_scores
    ADD CONSTRAINT fk_left_out_scores_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.left_out_scores
    ADD CONSTRAINT fk_left_out_scores_trace_id_dataset_id FOREIGN KEY (trace_id, dataset_id) REFERENCES public.traces(id, dataset_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT fk_logins_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT fk_slots_item_id_campaign_id FOREIGN KEY (item_id, campaign_id) REFERENCES public.campaign_items(id, campaign_id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT fk_slots_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT fk_steps_trace_id FOREIGN KEY (trace_id) REFERENCES public.traces(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.substeps
    ADD CONSTRAINT fk_substeps_trace_id_step FOREIGN KEY (trace_id, step) REFERENCES public.steps(trace_id, "position") ON DELETE CASCADE;
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT fk_traces_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.triangles
    ADD CONSTRAINT fk_triangles_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.triangles
    ADD CONSTRAINT fk_triangles_trace_id_dataset_id FOREIGN KEY (trace_id, dataset_id) REFERENCES public.traces(id, dataset_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT fk_uploads_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
