(* From adding and removing to replacing.

   Replacing a person's record is removing one and adding another: the promises of
   the two steps give one for the whole, and adding costs a sampled crowd nothing
   where E (1 - b) >= 1. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Incrowd Require Import Binomial Crowd Tables.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(* P <= E1 M + d1 and M <= E2 Q + d2, event by event. *)
Theorem replacing (R : realFieldType) (P M Q E1 E2 d1 d2 : R) : 0 <= E1 ->
  P <= E1 * M + d1 -> M <= E2 * Q + d2 -> P <= E1 * E2 * Q + (d1 + E1 * d2).
Proof.
move=> E1_ge0 first second; apply: le_trans first _.
apply: le_trans (ler_add (ler_wpmul2l E1_ge0 second) (lexx d1)) _.
by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.

(* A sampled crowd: removal at E1 with its exact delta, then addition at 1/(1-b) for nothing. *)
Theorem replacing_in_a_crowd (R : realFieldType) (b E1 : R) i n (I C : finType) (cell : I -> C)
    (T : {set I}) r r' (S : pred {ffun C -> nat}) : 0 < b -> b < 1 -> 1 <= E1 ->
    least (gamma b E1) i n -> r \notin T -> r' \notin T ->
  release cell b i.+1 (r |: T) S
    <= E1 / (1 - b) * release cell b i.+1 (r' |: T) S + gain b E1 1 i.+1 n.
Proof.
move=> b_gt0 b_lt1 E1_ge1 least_n r_out r'_out.
have q_gt0 : 0 < 1 - b by rewrite subr_gt0.
have outer x : x \notin T ->
    (x |: T) :\: [set j | cell j == cell x] = T :\: [set j | cell j == cell x].
  by move=> x_out; apply/setP => j; rewrite !inE; case: (eqVneq j x) => [-> | _] //; rewrite eqxx.
have card_T x : x \notin T -> #|part cell (x |: T) (cell x)| = #|part cell T (cell x)|.+1.
  move=> x_out; rewrite (cardsD1 x) !inE !eqxx /= add1n; congr _.+1; apply: eq_card => j.
  rewrite !inE; case: (eqVneq j x) => [-> | _] //=.
  by rewrite (negbTE x_out).
have rem : release cell b i.+1 (r |: T) S <= E1 * release cell b i.+1 T S + gain b E1 1 i.+1 n.
  apply: (@release_one_cell _ _ _ cell _ _ _ _ _ _ (cell r)); rewrite ?outer // => U.
  by rewrite card_T //; apply: removal.
have add : release cell b i.+1 T S <= (1 - b)^-1 * release cell b i.+1 (r' |: T) S + 0.
  apply: (@release_one_cell _ _ _ cell _ _ _ _ _ _ (cell r')); rewrite ?outer // => U.
  rewrite card_T // addr0 -(addn1 #|_|); apply: addition_free => //.
  by rewrite expr1 mulVf // lt0r_neq0.
have := replacing (le_trans ler01 E1_ge1) rem add.
by rewrite mulr0 addr0.
Qed.
